// IQ4_XS: 256 values in 136 bytes; f16 scale, 6-bit scales per 32 (two high bits apart), nibbles
fn unpack(at: u32, g: u32) {
    let b = at + 136u * (g >> 3u);
    let n = g & 7u;
    let low = (u8_at(b + 4u + (n >> 1u)) >> (4u * (n & 1u))) & 15u;
    let high = (u16_at(b + 2u) >> (2u * n)) & 3u;
    iq4(b + 8u + 16u * n, half_at(b) * (f32(low | (high << 4u)) - 32.0));
}
