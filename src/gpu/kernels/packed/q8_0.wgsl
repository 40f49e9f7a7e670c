// Q8_0: 34 bytes per 32 values; f16 scale, int8 each
fn dot_unit(row: u32, u: u32) -> f32 {
    let at = row + 34u * u;
    return half(u16_at(at)) * (dot16(bytes16(at + 2u), xl) * fl.x + dot16(bytes16(at + 18u), xh) * fh.x);
}
