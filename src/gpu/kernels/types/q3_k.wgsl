// Q3_K: 256 values in 110 bytes; 32 bytes of third bits, 64 bytes of 2-bit values, 12 bytes of 6-bit scales, f16 scale.
// Value 128n + 32r + l lies in bits 2r of byte 32n + l; its third bit is bit 4n + r of byte l, and 4 is subtracted
// where it is 0.

// section unpack, uses: types/read_bytes types/eight
fn scale_of(b: u32, k: u32) -> f32 {
    let low = (u8_at(b + 96u + (k & 7u)) >> (4u * (k >> 3u))) & 15u;
    let high = (u8_at(b + 104u + (k & 3u)) >> (2u * (k >> 2u))) & 3u;
    return f32(low | (high << 4u)) - 32.0;
}

fn unpack8(at: u32, u: u32) {
    let b = at + 110u * (u >> 5u);
    let n = (u >> 4u) & 1u;
    let r = (u >> 2u) & 3u;
    let scale = f16_at(b + 108u) * scale_of(b, (u & 31u) >> 1u);
    let l = 8u * (u & 3u);
    let q = b + 32u + 32u * n + l;
    wa = scale * (fields(u32_at(q), 2u * r, 3u) + 4.0 * fields(u32_at(b + l), 4u * n + r, 1u) - 4.0);
    wb = scale * (fields(u32_at(q + 4u), 2u * r, 3u) + 4.0 * fields(u32_at(b + l + 4u), 4u * n + r, 1u) - 4.0);
}
