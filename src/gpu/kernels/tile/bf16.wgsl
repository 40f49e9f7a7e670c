fn eight(at: u32, u: u32) {
    let q = weights[at / 16u + u];
    let low = bitcast<vec4<f32>>(q << vec4<u32>(16u));
    let high = bitcast<vec4<f32>>(q & vec4<u32>(0xffff0000u));
    wa = vec4<f32>(low.x, high.x, low.y, high.y);
    wb = vec4<f32>(low.z, high.z, low.w, high.w);
}
