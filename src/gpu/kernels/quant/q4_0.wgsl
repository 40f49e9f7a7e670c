// Q4_0: 32 values in 18 bytes; f16 scale, nibbles: low ones the first half, offset 8
fn unpack(at: u32, g: u32) {
    let b = at + 18u * g;
    let d = half_at(b);
    for (var i = 0u; i < 4u; i++) {
        let w = u32_at(b + 2u + 4u * i);
        for (var j = 0u; j < 4u; j++) {
            let q = (w >> (8u * j)) & 255u;
            v[4u * i + j] = d * (f32(q & 15u) - 8.0);
            v[16u + 4u * i + j] = d * (f32(q >> 4u) - 8.0);
        }
    }
}
