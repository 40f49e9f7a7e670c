// Q8_0: 32 values in 34 bytes; f16 scale, int8 each
fn unpack(at: u32, g: u32) {
    let b = at + 34u * g;
    let d = half_at(b);
    for (var i = 0u; i < 8u; i++) {
        let w = u32_at(b + 2u + 4u * i);
        for (var j = 0u; j < 4u; j++) { v[4u * i + j] = d * signed8((w >> (8u * j)) & 255u); }
    }
}
