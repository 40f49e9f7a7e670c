// Q5_0: 32 values in 22 bytes; f16 scale, 32 fifth bits, nibbles, offset 16
fn eight(at: u32, u: u32) {
    let b = at + 22u * (u >> 2u);
    let d = half_at(b);
    let high = u32_at(b + 2u);
    let q = b + 6u + 8u * (u & 1u);
    let shift = 2u * (u & 2u);
    let n = 8u * (u & 3u);
    wa = d * (fields(u32_at(q), shift, 15u) + bits(high, n, 16.0) - 16.0);
    wb = d * (fields(u32_at(q + 4u), shift, 15u) + bits(high, n + 4u, 16.0) - 16.0);
}
