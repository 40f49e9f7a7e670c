// Q6_K: 256 values in 210 bytes; 128 bytes of low nibbles, 64 of high bit pairs, 16 int8 scales, f16
// scale. Group g of 32 is n = g / 4, r = g % 4 of the format's index.
fn unpack(at: u32, g: u32) {
    let b = at + 210u * (g >> 3u);
    let n = (g >> 2u) & 1u;
    let r = g & 3u;
    let d = half_at(b + 208u);
    for (var h = 0u; h < 2u; h++) {
        let scale = d * signed8(u8_at(b + 192u + 8u * n + 2u * r + h));
        for (var i = 0u; i < 4u; i++) {
            let low = u32_at(b + 64u * n + 32u * (r & 1u) + 16u * h + 4u * i) >> (4u * (r >> 1u));
            let high = u32_at(b + 128u + 32u * n + 16u * h + 4u * i) >> (2u * r);
            for (var j = 0u; j < 4u; j++) {
                let q = ((low >> (8u * j)) & 15u) | (((high >> (8u * j)) & 3u) << 4u);
                v[16u * h + 4u * i + j] = scale * (f32(q) - 32.0);
            }
        }
    }
}
