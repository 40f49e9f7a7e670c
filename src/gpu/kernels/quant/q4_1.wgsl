// Q4_1: 32 values in 20 bytes; f16 scale, f16 minimum, nibbles
fn eight(at: u32, u: u32) {
    let b = at + 20u * (u >> 2u);
    let d = half_at(b);
    let m = half_at(b + 2u);
    let q = b + 4u + 8u * (u & 1u);
    let shift = 2u * (u & 2u);
    wa = d * fields(u32_at(q), shift, 15u) + m;
    wb = d * fields(u32_at(q + 4u), shift, 15u) + m;
}
