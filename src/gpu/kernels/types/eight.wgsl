// The weights that were unpacked last. type.unpack and type.aligned define unpack8(at, u): values 8u .. 8u + 7 of the
// row that begins at byte `at`, to wa and wb. Vectors, not an array, so that they stay in registers.
var<private> wa: vec4<f32>;
var<private> wb: vec4<f32>;
