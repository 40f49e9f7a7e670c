// eight() of rows that are whole vectors of 16 bytes, which are read at once: F16, BF16, F32.
var<private> wa: vec4<f32>;
var<private> wb: vec4<f32>;
