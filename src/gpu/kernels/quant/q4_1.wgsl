// Q4_1: 32 values in 20 bytes; f16 scale, f16 minimum, nibbles
fn unpack(at: u32, g: u32) {
    let b = at + 20u * g;
    let d = half_at(b);
    let m = half_at(b + 2u);
    for (var i = 0u; i < 4u; i++) {
        let w = u32_at(b + 4u + 4u * i);
        for (var j = 0u; j < 4u; j++) {
            let q = (w >> (8u * j)) & 255u;
            v[4u * i + j] = d * f32(q & 15u) + m;
            v[16u + 4u * i + j] = d * f32(q >> 4u) + m;
        }
    }
}
