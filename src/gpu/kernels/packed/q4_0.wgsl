// Q4_0: 18 bytes per 32 values; f16 scale, nibbles: low ones the first half, offset 8
fn dot_unit(row: u32, u: u32) -> f32 {
    let at = row + 18u * u;
    let q = bytes16(at + 2u);
    let mask = vec4<u32>(0x0f0f0f0fu);
    let l = dot16(q & mask, xl) * fl.x - 8.0 * fl.y;
    let h = dot16((q >> vec4<u32>(4u)) & mask, xh) * fh.x - 8.0 * fh.y;
    return half(u16_at(at)) * (l + h);
}
