// Q4_0: 32 values in 18 bytes; f16 scale, nibbles: low ones the first half, offset 8
fn eight(at: u32, u: u32) {
    let b = at + 18u * (u >> 2u);
    let d = half_at(b);
    let q = b + 2u + 8u * (u & 1u);
    let shift = 2u * (u & 2u);
    wa = d * (fields(u32_at(q), shift, 15u) - 8.0);
    wb = d * (fields(u32_at(q + 4u), shift, 15u) - 8.0);
}
