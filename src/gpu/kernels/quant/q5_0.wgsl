// Q5_0: 32 values in 22 bytes; f16 scale, 32 fifth bits, nibbles, offset 16
fn unpack(at: u32, g: u32) {
    let b = at + 22u * g;
    let d = half_at(b);
    let high = u32_at(b + 2u);
    for (var i = 0u; i < 4u; i++) {
        let w = u32_at(b + 6u + 4u * i);
        for (var j = 0u; j < 4u; j++) {
            let q = (w >> (8u * j)) & 255u;
            let n = 4u * i + j;
            v[n] = d * (f32((q & 15u) | (((high >> n) & 1u) << 4u)) - 16.0);
            v[16u + n] = d * (f32((q >> 4u) | (((high >> (n + 16u)) & 1u) << 4u)) - 16.0);
        }
    }
}
