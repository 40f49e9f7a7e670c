// Q4_K: 256 values in 144 bytes; f16 scale and scale of the minima, 12 bytes of 6-bit scales and
// minima, nibbles: groups 2i and 2i+1 are the low and high ones of the same 32 bytes
fn unpack(at: u32, g: u32) {
    let b = at + 144u * (g >> 3u);
    let n = g & 7u;
    let s = k_scales(b + 4u, n) * vec2<f32>(half_at(b), half_at(b + 2u));
    for (var i = 0u; i < 8u; i++) {
        let w = u32_at(b + 16u + 32u * (n >> 1u) + 4u * i) >> (4u * (n & 1u));
        for (var j = 0u; j < 4u; j++) { v[4u * i + j] = s.x * f32((w >> (8u * j)) & 15u) - s.y; }
    }
}
