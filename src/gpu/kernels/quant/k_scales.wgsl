// The 6-bit scales (x) and minima (y) of Q4_K and Q5_K, 12 bytes from byte `at` on.
fn k_scales(at: u32, g: u32) -> vec2<f32> {
    if (g < 4u) { return vec2<f32>(f32(u8_at(at + g) & 63u), f32(u8_at(at + g + 4u) & 63u)); }
    let both = u8_at(at + g + 4u);
    let s = (both & 15u) | ((u8_at(at + g - 4u) >> 6u) << 4u);
    let m = (both >> 4u) | ((u8_at(at + g) >> 6u) << 4u);
    return vec2<f32>(f32(s), f32(m));
}
