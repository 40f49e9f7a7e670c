// uses: params.low_rank common/pass common/split_input
// add_low_rank: y = x + scale * B a, the second half of what adapters add, for up to three products of one input.
// in0, x1, x2: x [rows][slots][cols]; in1, low1, low2: a [rows][slots][rank]; in2: chosen experts [rows][slots].
// weights: each B in panels [experts][panels][rank][16], 16 outputs side by side.
//
// A workgroup computes 64 columns of one sum for ROWS rows, so that values of B are read once for them.
override SLOTS: u32 = 1u;
override EXPERTS: u32 = 0u; // 1: every slot has the matrix of its expert
override ROWS: u32 = 1u;    // at most 4; 1 with slots
override SUMS0: u32 = 0u;   // split-K partial sums of the x; 0: not split
override SUMS1: u32 = 0u;
override SUMS2: u32 = 0u;
override LOW_SUMS: u32 = 0u; // of a
const PART = 64u; // values of a in workgroup memory at once

@group(0) @binding(3) var<storage, read> weights: array<f32>;

var<workgroup> low: array<f32, ROWS * PART>;

struct Sum { x: u32, x_stride: u32, low: u32, to: u32, to_stride: u32, cols: u32, rank: u32, high: u32, scale: f32, splits: u32 }

fn sum_of(group: u32) -> Sum {
    if (group >= params.first2) {
        return Sum(params.x2, params.x2_stride, params.low2, params.to2, params.to2_stride, params.cols2, params.rank2, params.high2, params.scale2, SUMS2);
    }
    if (group >= params.first1) {
        return Sum(params.x1, params.x1_stride, params.low1, params.to1, params.to1_stride, params.cols1, params.rank1, params.high1, params.scale1, SUMS1);
    }
    return Sum(params.in0, params.in0_stride, params.in1, params.out0, params.out0_stride, params.cols, params.rank0, params.high0, params.scale0, SUMS0);
}

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y / SLOTS * ROWS;
    let slot = group.y % SLOTS;
    if (row >= live_rows()) { return; }
    let rows = min(ROWS, live_rows() - row);
    let one = sum_of(group.x);
    var first = 0u;
    if (group.x >= params.first2) { first = params.first2; } else if (group.x >= params.first1) { first = params.first1; }
    let c = (group.x - first) * 64u + local;
    var panel = min(c, one.cols - 1u) / 16u;
    if (EXPERTS == 1u) { panel += params.panels * u32(arena[params.in2 + row * params.in2_stride + slot]); }
    let b = one.high + panel * one.rank * 16u + c % 16u;
    var sum = vec4<f32>();
    for (var j0 = 0u; j0 < one.rank; j0 += PART) {
        let n = min(PART, one.rank - j0);
        for (var r = 0u; r < rows && local < n; r++) {
            let at = one.low + (row + r) * params.in1_stride + slot * one.rank + j0 + local;
            low[r * PART + local] = sum_splits(at, params.in1_stride * params.low_split_rows, LOW_SUMS);
        }
        workgroupBarrier();
        for (var j = 0u; j < n; j++) {
            let w = weights[b + (j0 + j) * 16u];
            for (var r = 0u; r < ROWS; r++) { sum[r] += low[r * PART + j] * w; }
        }
        workgroupBarrier(); // before the part is replaced
    }
    if (c >= one.cols) { return; }
    for (var r = 0u; r < rows; r++) {
        let x = sum_splits(one.x + (row + r) * one.x_stride + slot * one.cols + c, one.x_stride * params.split_rows, one.splits);
        let adds = !(params.skip_soft == 1u && is_soft(row + r));
        arena[one.to + (row + r) * one.to_stride + slot * one.cols + c] = x + select(0.0, one.scale * sum[r], adds);
    }
}
