// Q5_1: 24 bytes per 32 values; f16 scale, f16 minimum, 32 fifth bits, nibbles, no offset
fn dot_unit(row: u32, u: u32) -> f32 {
    let at = row + 24u * u;
    let fifth = u32_at(at + 4u);
    let q = bytes16(at + 8u);
    let mask = vec4<u32>(0x0f0f0f0fu);
    let l = dot16((q & mask) | spread(fifth), xl) * fl.x;
    let h = dot16(((q >> vec4<u32>(4u)) & mask) | spread(fifth >> 16u), xh) * fh.x;
    return half(u16_at(at)) * (l + h) + half(u16_at(at + 2u)) * (fl.y + fh.y);
}
