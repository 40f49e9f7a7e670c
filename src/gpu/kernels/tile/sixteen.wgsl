// sixteen(at, v): values 16v .. 16v+15 of a row, as eight() has them, in wa, wb, wc and wd.
var<private> wc: vec4<f32>;
var<private> wd: vec4<f32>;

fn sixteen(at: u32, v: u32) {
    eight(at, 2u * v + 1u);
    wc = wa;
    wd = wb;
    eight(at, 2u * v);
}
