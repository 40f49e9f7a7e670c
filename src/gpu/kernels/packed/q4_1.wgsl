// Q4_1: 20 bytes per 32 values; f16 scale, f16 minimum, nibbles as Q4_0, no offset
fn dot_unit(row: u32, u: u32) -> f32 {
    let at = row + 20u * u;
    let q = bytes16(at + 4u);
    let mask = vec4<u32>(0x0f0f0f0fu);
    let l = dot16(q & mask, xl) * fl.x;
    let h = dot16((q >> vec4<u32>(4u)) & mask, xh) * fh.x;
    return half(u16_at(at)) * (l + h) + half(u16_at(at + 2u)) * (fl.y + fh.y);
}
