// Q3_K: 256 values in 110 bytes; 32 bytes of third bits, 64 bytes of 2-bit values, 12 bytes of
// 6-bit scales, f16 scale
fn scale_of(b: u32, k: u32) -> f32 {
    let low = select(u8_at(b + 96u + k - 8u) >> 4u, u8_at(b + 96u + (k & 7u)) & 15u, k < 8u);
    let high = (u8_at(b + 104u + (k & 3u)) >> (2u * (k >> 2u))) & 3u;
    return f32(low | (high << 4u)) - 32.0;
}

fn unpack(at: u32, g: u32) {
    let b = at + 110u * (g >> 3u);
    let n = (g >> 2u) & 1u;
    let r = g & 3u;
    let d = half_at(b + 108u);
    for (var h = 0u; h < 2u; h++) {
        let scale = d * scale_of(b, 8u * n + 2u * r + h);
        for (var i = 0u; i < 4u; i++) {
            let w = u32_at(b + 32u + 32u * n + 16u * h + 4u * i) >> (2u * r);
            let third = u32_at(b + 16u * h + 4u * i) >> (4u * n + r);
            for (var j = 0u; j < 4u; j++) {
                let q = f32((w >> (8u * j)) & 3u) - select(4.0, 0.0, ((third >> (8u * j)) & 1u) == 1u);
                v[16u * h + 4u * i + j] = scale * q;
            }
        }
    }
}
