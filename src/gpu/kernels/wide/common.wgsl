// Weights as 16-byte vectors, for types whose blocks are whole vectors. Eight units of 32 values make a block
// of 256: unit v has 16 consecutive values at offset_low(v), which meet x0..x3, and 16 at offset_high(v),
// which meet x4..x7. wide/TYPE.wgsl defines dot32(block, v).
@group(0) @binding(3) var<storage, read> weights: array<vec4<u32>>;

var<private> x0: vec4<f32>;
var<private> x1: vec4<f32>;
var<private> x2: vec4<f32>;
var<private> x3: vec4<f32>;
var<private> x4: vec4<f32>;
var<private> x5: vec4<f32>;
var<private> x6: vec4<f32>;
var<private> x7: vec4<f32>;
var<private> sum_low: f32;  // of x0..x3, for the minima
var<private> sum_high: f32; // of x4..x7

fn half(h: u32) -> f32 {
    let magnitude = h & 0x7fffu;
    let normal = bitcast<f32>((magnitude << 13u) + 0x38000000u);
    let small = f32(magnitude) * 5.9604644775390625e-8;
    let huge = bitcast<f32>(0x7f800000u | ((h & 0x3ffu) << 13u));
    let value = select(select(normal, huge, magnitude >= 0x7c00u), small, magnitude < 0x400u);
    return select(value, -value, (h & 0x8000u) != 0u);
}

fn nibbles(w: u32, shift: u32) -> vec4<f32> {
    return vec4<f32>((vec4<u32>(w, w >> 8u, w >> 16u, w >> 24u) >> vec4<u32>(shift)) & vec4<u32>(15u));
}
