// Types whose blocks of 256 are whole vectors, in eight units of 32 values: unit v has 16 consecutive values at
// offset_low(v), which meet x0..x3, and 16 at offset_high(v), which meet x4..x7. type.wide defines dot32(block, v).
var<private> x0: vec4<f32>;
var<private> x1: vec4<f32>;
var<private> x2: vec4<f32>;
var<private> x3: vec4<f32>;
var<private> x4: vec4<f32>;
var<private> x5: vec4<f32>;
var<private> x6: vec4<f32>;
var<private> x7: vec4<f32>;
var<private> sum_low: f32;  // sum of x0..x3, for the minima
var<private> sum_high: f32; // sum of x4..x7

fn nibbles(w: u32, shift: u32) -> vec4<f32> {
    return vec4<f32>((vec4<u32>(w, w >> 8u, w >> 16u, w >> 24u) >> vec4<u32>(shift)) & vec4<u32>(15u));
}
