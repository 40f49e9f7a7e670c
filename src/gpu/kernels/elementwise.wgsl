// add, scale, mul_vector, geglu, softcap, take_rows, recall: a thread makes EACH values, 64 apart.
override OP: u32;
override EACH: u32 = 1u; // more where there are so many that starting threads takes longer than what they do
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

fn value(row: u32, c: u32) -> f32 {
    let a = step.in0 + row * step.in0_stride;
    if (OP == ADD) { return (arena[a + c] + arena[step.in1 + row * step.in1_stride + c]) * step.scale; }
    if (OP == SCALE) { return arena[a + c] * weights[0]; }
    if (OP == MUL_VECTOR) { return arena[a + c] * step.scale * weights[c]; }
    if (OP == GEGLU) {
        return gelu(added(a + c, step.in0_stride * step.sum_rows, SUMS0)) *
               added(step.in1 + row * step.in1_stride + c, step.in1_stride * step.sum_rows, SUMS1);
    }
    if (OP == GEGLU_FUSED) {
        let gate = a + (c / step.width) * 2u * step.width + c % step.width;
        return gelu(arena[gate]) * arena[gate + step.width];
    }
    if (OP == SOFTCAP) {
        let x = arena[a + c];
        let is_number = (bitcast<u32>(x) & 0x7fffffffu) <= 0x7f800000u; // by bits: what is none must stay none
        return select(x, step.scale * exact_tanh(x / step.scale), is_number);
    }
    if (OP == RECALL) { return select(0.0, arena[a + c], rows[5u + 3u * MAX_ROWS] == 0u); }
    return arena[step.in0 + (step.row0 + wanted_row(row)) * step.in0_stride + c];
}

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y;
    if (row >= live_rows()) { return; }
    for (var i = 0u; i < EACH; i++) {
        let c = (group.x * EACH + i) * 64u + local;
        if (c < step.cols) { arena[step.out0 + row * step.out0_stride + c] = value(row, c); }
    }
}
