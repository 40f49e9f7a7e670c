// Weights against 8-bit activations, in units of 32 weights that meet two stretches of 16 activations, those at
// 16 low_at(u) and at 16 high_at(u) of the row. packed/TYPE.wgsl defines dot_unit(row, u): their product, from
// what take_unit() has fetched; row_at(matrix, n) is where row n of the matrix at vector `matrix` begins.
var<private> xl: vec4<u32>; // sixteen activations, four to a word
var<private> xh: vec4<u32>;
var<private> fl: vec2<f32>; // what one of xl is worth; what all of xl together are
var<private> fh: vec2<f32>;

fn dot16(w: vec4<u32>, x: vec4<u32>) -> f32 {
    return f32(dot4I8Packed(w.x, x.x) + dot4I8Packed(w.y, x.y) + dot4I8Packed(w.z, x.z) + dot4I8Packed(w.w, x.w));
}
