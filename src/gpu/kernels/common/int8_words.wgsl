// Small unsigned integers, four to a word, as operands of dot4I8Packed.
// q minus half of its range, as signed bytes: flips the sign bit `sign` of each byte (0 becomes the lowest value), then
// copies it to the bits above (times `above`).
fn signed_bytes(q: vec4<u32>, sign: u32, above: u32) -> vec4<u32> {
    let v = q ^ vec4<u32>(sign);
    return v | ((v & vec4<u32>(sign)) * above);
}

// Bits 0..15 of w, one per byte, as bit 4.
fn spread_bits(w: u32) -> vec4<u32> {
    let four = (vec4<u32>(w) >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(15u);
    return ((four * 0x00204081u) & vec4<u32>(0x01010101u)) << vec4<u32>(4u);
}
