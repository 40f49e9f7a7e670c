// A thread's sums of soft_gather: 16 neighboring columns from low_column(t) on, and 16 from high_column(t) on.
// type.gather or canvas/gather_runs defines those, fetch_part(at, t), what thread t needs of the row that begins at
// byte `at`, and add(part, t, weight).
var<private> a0: vec4<f32>;
var<private> a1: vec4<f32>;
var<private> a2: vec4<f32>;
var<private> a3: vec4<f32>;
var<private> b0: vec4<f32>;
var<private> b1: vec4<f32>;
var<private> b2: vec4<f32>;
var<private> b3: vec4<f32>;
