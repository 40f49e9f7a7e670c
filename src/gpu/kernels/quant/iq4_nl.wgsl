// IQ4_NL: 32 values in 18 bytes; f16 scale, nibbles into a table
fn unpack(at: u32, g: u32) {
    let b = at + 18u * g;
    iq4(b + 2u, half_at(b));
}
