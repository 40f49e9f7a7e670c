// BF16: the upper half of an f32
fn unpack(at: u32, g: u32) {
    for (var i = 0u; i < 16u; i++) {
        let w = u32_at(at + 2u * (32u * g + 2u * i));
        v[2u * i] = bitcast<f32>(w << 16u);
        v[2u * i + 1u] = bitcast<f32>(w & 0xffff0000u);
    }
}
