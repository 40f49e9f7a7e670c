// uses: types/read_bytes
// The 6-bit scale (x) and minimum (y) of group g of a Q4_K or Q5_K block; the 12 bytes begin at the aligned byte `at`.
fn k_scales(at: u32, g: u32) -> vec2<f32> {
    let shift = (g & 3u) * 8u;
    let a = weights[at >> 2u] >> shift;         // byte g % 4
    let b = weights[(at >> 2u) + 1u] >> shift;  // byte 4 + g % 4
    let c = weights[(at >> 2u) + 2u] >> shift;  // byte 8 + g % 4
    let s = select((c & 15u) | ((a >> 2u) & 48u), a & 63u, g < 4u);
    let m = select(((c >> 4u) & 15u) | ((b >> 2u) & 48u), b & 63u, g < 4u);
    return vec2<f32>(f32(s), f32(m));
}
