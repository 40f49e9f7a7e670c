// F16
fn unpack(at: u32, g: u32) {
    for (var i = 0u; i < 16u; i++) {
        let w = u32_at(at + 2u * (32u * g + 2u * i));
        v[2u * i] = half(w & 0xffffu);
        v[2u * i + 1u] = half(w >> 16u);
    }
}
