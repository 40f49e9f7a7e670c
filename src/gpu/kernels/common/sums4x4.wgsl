// Sums of four rows by four outputs (or columns, or values): a member is a row.
struct Sums4x4 { a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32> }

// s += outer product of x (a value per row) and w.
fn add_outer(s: Sums4x4, x: vec4<f32>, w: vec4<f32>) -> Sums4x4 {
    return Sums4x4(fma(vec4<f32>(x.x), w, s.a), fma(vec4<f32>(x.y), w, s.b), fma(vec4<f32>(x.z), w, s.c), fma(vec4<f32>(x.w), w, s.d));
}
