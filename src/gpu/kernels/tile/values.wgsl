// Where weights are unpacked to, without quant/common.wgsl: for rows that are whole vectors (F16, BF16, F32), and for run/.
var<private> wa: vec4<f32>;
var<private> wb: vec4<f32>;
