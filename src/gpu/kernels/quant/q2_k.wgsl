// Q2_K: 256 values in 84 bytes; 16 bytes of 4-bit scales and minima, 64 bytes of 2-bit values, f16
// scale and scale of the minima. Group g of 32 is n = g / 4, r = g % 4 of the format's index.
fn unpack(at: u32, g: u32) {
    let b = at + 84u * (g >> 3u);
    let n = (g >> 2u) & 1u;
    let r = g & 3u;
    let d = half_at(b + 80u);
    let dmin = half_at(b + 82u);
    for (var h = 0u; h < 2u; h++) {
        let s = u8_at(b + 8u * n + 2u * r + h);
        let scale = d * f32(s & 15u);
        let least = dmin * f32(s >> 4u);
        for (var i = 0u; i < 4u; i++) {
            let w = u32_at(b + 16u + 32u * n + 16u * h + 4u * i) >> (2u * r);
            for (var j = 0u; j < 4u; j++) { v[16u * h + 4u * i + j] = scale * f32((w >> (8u * j)) & 3u) - least; }
        }
    }
}
