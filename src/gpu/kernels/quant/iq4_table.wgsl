// The sixteen values of IQ4_NL and IQ4_XS.
const IQ4 = array<f32, 16>(-127.0, -104.0, -83.0, -65.0, -49.0, -35.0, -22.0, -10.0,
                           1.0, 13.0, 25.0, 38.0, 53.0, 69.0, 89.0, 113.0);

fn iq4(at: u32, d: f32) {
    var table = IQ4;
    for (var i = 0u; i < 4u; i++) {
        let w = u32_at(at + 4u * i);
        for (var j = 0u; j < 4u; j++) {
            let q = (w >> (8u * j)) & 255u;
            v[4u * i + j] = d * table[q & 15u];
            v[16u + 4u * i + j] = d * table[q >> 4u];
        }
    }
}
