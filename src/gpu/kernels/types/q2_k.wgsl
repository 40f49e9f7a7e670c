// Q2_K: 256 values in 84 bytes; 16 bytes of 4-bit scales and minima, 64 bytes of 2-bit values, f16 scale of the scales
// and of the minima. Value 128n + 32r + l lies in bits 2r of byte 32n + l.

// section unpack, uses: types/read_bytes types/eight
fn unpack8(at: u32, u: u32) {
    let b = at + 84u * (u >> 5u);
    let n = (u >> 4u) & 1u;
    let r = (u >> 2u) & 3u;
    let s = u8_at(b + ((u & 31u) >> 1u));
    let scale = f16_at(b + 80u) * f32(s & 15u);
    let lowest = f16_at(b + 82u) * f32(s >> 4u);
    let q = b + 16u + 32u * n + 8u * (u & 3u);
    wa = scale * fields(u32_at(q), 2u * r, 3u) - lowest;
    wb = scale * fields(u32_at(q + 4u), 2u * r, 3u) - lowest;
}
