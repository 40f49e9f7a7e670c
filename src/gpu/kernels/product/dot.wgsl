// Weights against int8 activations, in units of 32 weights, which meet two ranges of 16 activations: those at 16
// low_index(u) and at 16 high_index(u) of the row. type.dot defines fetch_unit(row, u), which loads unit u, and
// dot_unit(unit, u), its product with the activations below; and with product/dot_blocks or product/dot_vec4
// row_at(matrix, n), where row n of the matrix at vector `matrix` begins. AHEAD units, at most 3, may be loaded before
// they are needed: about six vectors, since more registers cost more than waiting.
var<private> x_low: vec4<u32>; // sixteen activations, four per word
var<private> x_high: vec4<u32>;
var<private> s_low: vec2<f32>; // scale of x_low, and scale times the sum of x_low
var<private> s_high: vec2<f32>;

fn dot16(w: vec4<u32>, x: vec4<u32>) -> f32 {
    return f32(dot4I8Packed(w.x, x.x) + dot4I8Packed(w.y, x.y) + dot4I8Packed(w.z, x.z) + dot4I8Packed(w.w, x.w));
}
