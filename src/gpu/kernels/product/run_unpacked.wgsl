// uses: <eight>
// Runs of types that have unpack8() only: eight values are two quarters.
const FIRST_V = 1u;

struct Run { at: u32, u: u32, a: vec4<f32>, b: vec4<f32> }

fn fetch(at: u32, s: u32, p: u32) -> Run { return Run(at, 8u * s + 2u * p, vec4<f32>(), vec4<f32>()); }

fn unpack_quarter(run: ptr<function, Run>, j: u32) {
    if ((j & 1u) == 0u) {
        let u = (*run).u + (j >> 1u);
        unpack8((*run).at, u + 4u);
        let b = wa;
        (*run).b = wb;
        unpack8((*run).at, u);
        (*run).a = wb;
        wb = b;
    } else {
        wa = (*run).a;
        wb = (*run).b;
    }
}
