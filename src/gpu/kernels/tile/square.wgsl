// Sums of four rows by four outputs, columns or values: a component is one of those.
struct Square { a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32> }

// x: what each row has there.
fn more(s: Square, x: vec4<f32>, w: vec4<f32>) -> Square {
    return Square(fma(vec4<f32>(x.x), w, s.a), fma(vec4<f32>(x.y), w, s.b), fma(vec4<f32>(x.z), w, s.c), fma(vec4<f32>(x.w), w, s.d));
}
