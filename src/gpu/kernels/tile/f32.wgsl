fn eight(at: u32, u: u32) {
    wa = bitcast<vec4<f32>>(weights[at / 16u + 2u * u]);
    wb = bitcast<vec4<f32>>(weights[at / 16u + 2u * u + 1u]);
}
