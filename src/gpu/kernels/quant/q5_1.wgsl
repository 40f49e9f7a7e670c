// Q5_1: 32 values in 24 bytes; f16 scale, f16 minimum, 32 fifth bits, nibbles
fn eight(at: u32, u: u32) {
    let b = at + 24u * (u >> 2u);
    let d = half_at(b);
    let m = half_at(b + 2u);
    let high = u32_at(b + 4u);
    let q = b + 8u + 8u * (u & 1u);
    let shift = 2u * (u & 2u);
    let n = 8u * (u & 3u);
    wa = d * (fields(u32_at(q), shift, 15u) + bits(high, n, 16.0)) + m;
    wb = d * (fields(u32_at(q + 4u), shift, 15u) + bits(high, n + 4u, 16.0)) + m;
}
