// Bounds of towers. By bits: a compiler may believe that there is nothing but numbers, and what is none must stay none, so
// that a damaged file is noticed.
fn is_number(x: vec4<f32>) -> vec4<bool> { return (bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu)) <= vec4<u32>(0x7f800000u); }

fn between(x: vec4<f32>, bounds: vec2<f32>) -> vec4<f32> {
    return select(x, min(max(x, vec4<f32>(bounds.x)), vec4<f32>(bounds.y)), is_number(x));
}

fn one_between(x: f32, low: f32, high: f32) -> f32 {
    return select(x, min(max(x, low), high), (bitcast<u32>(x) & 0x7fffffffu) <= 0x7f800000u);
}
