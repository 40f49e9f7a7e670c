// MXFP4: 32 values in 17 bytes; a power of two and E2M1 numbers (the table holds them doubled)
const E2M1 = array<f32, 16>(0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 0.0, -1.0, -2.0, -3.0, -4.0, -6.0, -8.0, -12.0);

fn unpack(at: u32, g: u32) {
    let b = at + 17u * g;
    let e = u8_at(b);
    let d = bitcast<f32>(select((e - 1u) << 23u, 0x00200000u << e, e < 2u));
    var table = E2M1;
    for (var i = 0u; i < 4u; i++) {
        let w = u32_at(b + 1u + 4u * i);
        for (var j = 0u; j < 4u; j++) {
            let q = (w >> (8u * j)) & 255u;
            v[4u * i + j] = d * table[q & 15u];
            v[16u + 4u * i + j] = d * table[q >> 4u];
        }
    }
}
