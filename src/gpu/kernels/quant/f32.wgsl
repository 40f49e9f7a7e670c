// F32
fn eight(at: u32, u: u32) {
    let b = at + 32u * u;
    wa = bitcast<vec4<f32>>(vec4<u32>(u32_at(b), u32_at(b + 4u), u32_at(b + 8u), u32_at(b + 12u)));
    wb = bitcast<vec4<f32>>(vec4<u32>(u32_at(b + 16u), u32_at(b + 20u), u32_at(b + 24u), u32_at(b + 28u)));
}
