// Four small integers to a word, as the kernels with 8-bit activations take them.

// `bits` bits as signed bytes: flips the sign bit (so that 0 becomes the least value), then copies it upwards.
fn less_half(q: vec4<u32>, sign: u32, above: u32) -> vec4<u32> {
    let v = q ^ vec4<u32>(sign);
    return v | ((v & vec4<u32>(sign)) * above);
}

// Bits 0..15 of w, one to a byte, as bit 4.
fn spread(w: u32) -> vec4<u32> {
    let four = (vec4<u32>(w) >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(15u);
    return ((four * 0x00204081u) & vec4<u32>(0x01010101u)) << vec4<u32>(4u);
}
