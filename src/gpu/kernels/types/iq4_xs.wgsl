// IQ4_XS: 256 values in 136 bytes; f16 scale, 6-bit scales of 8 groups of 32 (the two high bits apart), nibbles, which
// index a table.

// section unpack, uses: types/read_bytes types/eight types/iq4_table
fn unpack8(at: u32, u: u32) {
    let b = at + 136u * (u >> 5u);
    let g = (u >> 2u) & 7u;
    let low = (u8_at(b + 4u + (g >> 1u)) >> (4u * (g & 1u))) & 15u;
    let high = (u16_at(b + 2u) >> (2u * g)) & 3u;
    let d = f16_at(b) * (f32(low | (high << 4u)) - 32.0);
    let q = b + 8u + 16u * g + 8u * (u & 1u);
    wa = d * iq4(u32_at(q), 2u * (u & 2u));
    wb = d * iq4(u32_at(q + 4u), 2u * (u & 2u));
}
