// add, scale, mul_vector, geglu, softcap, take_rows, recall: one thread per value.
override OP: u32;
override SUMS0: u32 = 0u; // geglu: splits that gates and ups are the sums of, 0: none
override SUMS1: u32 = 0u;
const ADD = 0u;
const SCALE = 1u;
const MUL_VECTOR = 2u;
const GEGLU = 3u;
const GEGLU_FUSED = 4u; // groups of `width` gates, then `width` ups
const SOFTCAP = 5u;
const TAKE_ROWS = 6u;
const RECALL = 7u;

@group(0) @binding(3) var<storage, read> weights: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) thread: vec3<u32>) {
    let c = thread.x;
    let row = thread.y;
    if (row >= live_rows() || c >= step.cols) { return; }
    let a = step.in0 + row * step.in0_stride;
    var y = 0.0;
    if (OP == ADD) {
        y = (arena[a + c] + arena[step.in1 + row * step.in1_stride + c]) * step.scale;
    } else if (OP == SCALE) {
        y = arena[a + c] * weights[0];
    } else if (OP == MUL_VECTOR) {
        y = arena[a + c] * step.scale * weights[c];
    } else if (OP == GEGLU) {
        y = gelu(added(a + c, step.in0_stride * step.sum_rows, SUMS0)) *
            added(step.in1 + row * step.in1_stride + c, step.in1_stride * step.sum_rows, SUMS1);
    } else if (OP == GEGLU_FUSED) {
        let gate = a + (c / step.width) * 2u * step.width + c % step.width;
        y = gelu(arena[gate]) * arena[gate + step.width];
    } else if (OP == SOFTCAP) {
        let x = arena[a + c];
        let is_number = (bitcast<u32>(x) & 0x7fffffffu) <= 0x7f800000u; // by bits: what is none must stay none
        y = select(x, step.scale * exact_tanh(x / step.scale), is_number);
    } else if (OP == RECALL) {
        if (rows[5u + 3u * MAX_ROWS] == 0u) { y = arena[a + c]; }
    } else {
        y = arena[step.in0 + (step.row0 + wanted_row(row)) * step.in0_stride + c];
    }
    arena[step.out0 + row * step.out0_stride + c] = y;
}
