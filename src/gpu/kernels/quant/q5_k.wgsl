// Q5_K: 256 values in 176 bytes; as Q4_K with 32 bytes of fifth bits before the nibbles
fn unpack(at: u32, g: u32) {
    let b = at + 176u * (g >> 3u);
    let n = g & 7u;
    let s = k_scales(b + 4u, n) * vec2<f32>(half_at(b), half_at(b + 2u));
    for (var i = 0u; i < 8u; i++) {
        let w = u32_at(b + 48u + 32u * (n >> 1u) + 4u * i) >> (4u * (n & 1u));
        let fifth = u32_at(b + 16u + 4u * i) >> n;
        for (var j = 0u; j < 4u; j++) {
            let q = ((w >> (8u * j)) & 15u) | (((fifth >> (8u * j)) & 1u) << 4u);
            v[4u * i + j] = s.x * f32(q) - s.y;
        }
    }
}
