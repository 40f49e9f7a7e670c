// The sixteen values of IQ4_NL and IQ4_XS.
const IQ4 = array<f32, 16>(-127.0, -104.0, -83.0, -65.0, -49.0, -35.0, -22.0, -10.0,
                           1.0, 13.0, 25.0, 38.0, 53.0, 69.0, 89.0, 113.0);

fn iq4(w: u32, shift: u32) -> vec4<f32> {
    var table = IQ4;
    let q = (vec4<u32>(w, w >> 8u, w >> 16u, w >> 24u) >> vec4<u32>(shift)) & vec4<u32>(15u);
    return vec4<f32>(table[q.x], table[q.y], table[q.z], table[q.w]);
}
