// F32
fn unpack(at: u32, g: u32) {
    for (var i = 0u; i < 32u; i++) { v[i] = bitcast<f32>(u32_at(at + 4u * (32u * g + i))); }
}
