// IQ4_NL: 32 values in 18 bytes; f16 scale, nibbles as in Q4_0, which index a table.

// section unpack, uses: types/read_bytes types/eight types/iq4_table
fn unpack8(at: u32, u: u32) {
    let b = at + 18u * (u >> 2u);
    let d = f16_at(b);
    let q = b + 2u + 8u * (u & 1u);
    wa = d * iq4(u32_at(q), 2u * (u & 2u));
    wb = d * iq4(u32_at(q + 4u), 2u * (u & 2u));
}
