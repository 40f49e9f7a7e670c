// An f16 from its bits. The built-in conversions may flush subnormals, which block scales often are.
fn f16_value(h: u32) -> f32 {
    let magnitude = h & 0x7fffu;
    let normal = bitcast<f32>((magnitude << 13u) + 0x38000000u);
    let small = f32(magnitude) * 5.9604644775390625e-8;
    let huge = bitcast<f32>(0x7f800000u | ((h & 0x3ffu) << 13u)); // infinity, NaN
    let value = select(select(normal, huge, magnitude >= 0x7c00u), small, magnitude < 0x400u);
    return select(value, -value, (h & 0x8000u) != 0u);
}
