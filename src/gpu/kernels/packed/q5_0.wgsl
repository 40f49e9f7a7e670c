// Q5_0: 22 bytes per 32 values; f16 scale, 32 fifth bits, nibbles, offset 16
fn dot_unit(row: u32, u: u32) -> f32 {
    let at = row + 22u * u;
    let fifth = u32_at(at + 2u);
    let q = bytes16(at + 6u);
    let mask = vec4<u32>(0x0f0f0f0fu);
    let l = dot16((q & mask) | spread(fifth), xl) * fl.x - 16.0 * fl.y;
    let h = dot16(((q >> vec4<u32>(4u)) & mask) | spread(fifth >> 16u), xh) * fh.x - 16.0 * fh.y;
    return half(u16_at(at)) * (l + h);
}
