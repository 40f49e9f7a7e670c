// uses: product/run <eight>
// Runs for rows that may end with half a run, of any type: part 0 has the first 32 values, part 1 the others.
const FIRST_V = 2u;

struct Run { at: u32, u: u32, a: vec4<f32>, b: vec4<f32> }

fn fetch(at: u32, s: u32, p: u32) -> Run { return Run(at, 8u * s + 4u * p, vec4<f32>(), vec4<f32>()); }

fn unpack_quarter(run: ptr<function, Run>, j: u32) {
    if ((j & 1u) == 0u) {
        let u = (*run).u + (j >> 1u);
        unpack8((*run).at, u + 2u);
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
