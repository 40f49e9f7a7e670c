// Q5_1: 32 values in 24 bytes; f16 scale, f16 minimum, 32 fifth bits, nibbles
fn unpack(at: u32, g: u32) {
    let b = at + 24u * g;
    let d = half_at(b);
    let m = half_at(b + 2u);
    let high = u32_at(b + 4u);
    for (var i = 0u; i < 4u; i++) {
        let w = u32_at(b + 8u + 4u * i);
        for (var j = 0u; j < 4u; j++) {
            let q = (w >> (8u * j)) & 255u;
            let n = 4u * i + j;
            v[n] = d * f32((q & 15u) | (((high >> n) & 1u) << 4u)) + m;
            v[16u + n] = d * f32((q >> 4u) | (((high >> (n + 16u)) & 1u) << 4u)) + m;
        }
    }
}
