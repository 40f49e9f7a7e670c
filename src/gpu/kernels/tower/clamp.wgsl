// Clamps of the encoders. By bits: a compiler may assume that there is no NaN, and NaN must stay NaN so that a damaged
// file is noticed.
fn not_nan(x: vec4<f32>) -> vec4<bool> { return (bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu)) <= vec4<u32>(0x7f800000u); }

fn clamp4(x: vec4<f32>, bounds: vec2<f32>) -> vec4<f32> {
    return select(x, min(max(x, vec4<f32>(bounds.x)), vec4<f32>(bounds.y)), not_nan(x));
}

fn clamp1(x: f32, low: f32, high: f32) -> f32 {
    return select(x, min(max(x, low), high), (bitcast<u32>(x) & 0x7fffffffu) <= 0x7f800000u);
}
