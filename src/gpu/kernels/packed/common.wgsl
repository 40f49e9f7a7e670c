// Weights as 16-byte vectors against 8-bit activations. A block is 256 weights in BLOCK vectors; unit v of its
// eight is 32 weights that meet two stretches of 16 activations, at 16 low_at(v) and at 16 high_at(v) of the
// block. packed/TYPE.wgsl defines dot_unit(block, v): their product, from what take() has fetched.
@group(0) @binding(3) var<storage, read> weights: array<vec4<u32>>;

var<private> xl: vec4<u32>; // sixteen activations, four to a word
var<private> xh: vec4<u32>;
var<private> fl: vec2<f32>; // what one of xl is worth; what all of xl together are
var<private> fh: vec2<f32>;

fn dot16(w: vec4<u32>, x: vec4<u32>) -> f32 {
    return f32(dot4I8Packed(w.x, x.x) + dot4I8Packed(w.y, x.y) + dot4I8Packed(w.z, x.z) + dot4I8Packed(w.w, x.w));
}
