// uses: params.norm common/pass common/arena common/split_input common/gelu common/tanh
// elementwise: y = f(x), one formula per OP:
//   ADD (in0 + in1) * scale;  SCALE in0 * weights[0];  MUL_VECTOR in0 * scale * weights[c];  GEGLU gelu(in0) * in1
//   SOFTCAP scale * tanh(in0 / scale); TAKE_ROWS the wanted rows of in0;
//   READ_KEPT in0, or 0 in the first pass of a canvas; MULTIPLY in0 * scale;
//   MEAN_ROWS mean of the rows of a text from the wanted row on; CONCAT in0, then in1
// in0, in1, y: [rows][cols]. A thread computes PER_THREAD values, 64 apart.
override OP: u32;
override PER_THREAD: u32 = 1u; // more than 1 where starting threads would take longer than their work
override SUMS0: u32 = 0u;      // geglu: split-K partial sums of gates and ups; 0: not split
override SUMS1: u32 = 0u;
const ADD = 0u;
const SCALE = 1u;
const MUL_VECTOR = 2u;
const GEGLU = 3u;
const GEGLU_FUSED = 4u; // groups of `width` gates, then `width` ups
const SOFTCAP = 5u;
const TAKE_ROWS = 6u;
const READ_KEPT = 7u;
const MULTIPLY = 8u;
const MEAN_ROWS = 9u;
const CONCAT = 10u; // `width` values of in0

@group(0) @binding(3) var<storage, read> weights: array<f32>;

// Sums of 32 rows are added, which keeps the error of long texts small.
fn mean_of_text(row: u32, c: u32) -> f32 {
    let first = wanted_row(row);
    let n = rows[8u + 4u * MAX_ROWS + 2u * first] - rows[7u + 4u * MAX_ROWS + 2u * first] + 1u;
    var total = 0.0;
    for (var i = 0u; i < n; i += 32u) {
        var sum = 0.0;
        for (var j = i; j < min(i + 32u, n); j++) { sum += arena[params.in0 + (first + j) * params.in0_stride + c]; }
        total += sum;
    }
    return total / f32(n);
}

fn value(row: u32, c: u32) -> f32 {
    let a = params.in0 + row * params.in0_stride;
    if (OP == ADD) { return (arena[a + c] + arena[params.in1 + row * params.in1_stride + c]) * params.scale; }
    if (OP == SCALE) { return arena[a + c] * weights[0]; }
    if (OP == MUL_VECTOR) { return arena[a + c] * params.scale * weights[c]; }
    if (OP == GEGLU) {
        return gelu(sum_splits(a + c, params.in0_stride * params.split_rows, SUMS0)) *
               sum_splits(params.in1 + row * params.in1_stride + c, params.in1_stride * params.split_rows, SUMS1);
    }
    if (OP == GEGLU_FUSED) {
        let gate = a + (c / params.width) * 2u * params.width + c % params.width;
        return gelu(arena[gate]) * arena[gate + params.width];
    }
    if (OP == SOFTCAP) {
        let x = arena[a + c];
        let not_nan = (bitcast<u32>(x) & 0x7fffffffu) <= 0x7f800000u; // by bits, so that NaN stays NaN
        return select(x, params.scale * exact_tanh(x / params.scale), not_nan);
    }
    if (OP == MULTIPLY) { return arena[a + c] * params.scale; }
    if (OP == MEAN_ROWS) { return mean_of_text(row, c); }
    if (OP == CONCAT) {
        if (c < params.width) { return arena[a + c]; }
        return arena[params.in1 + row * params.in1_stride + c - params.width];
    }
    if (OP == READ_KEPT) { return select(0.0, arena[a + c], rows[5u + 3u * MAX_ROWS] == 0u); }
    return arena[params.in0 + (params.first_wanted + wanted_row(row)) * params.in0_stride + c];
}

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y;
    if (row >= live_rows()) { return; }
    for (var i = 0u; i < PER_THREAD; i++) {
        let c = (group.x * PER_THREAD + i) * 64u + local;
        if (c < params.cols) { arena[params.out0 + row * params.out0_stride + c] = value(row, c); }
    }
}
