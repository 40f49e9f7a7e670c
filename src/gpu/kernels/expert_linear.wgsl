// expert_linear: one output of one slot per LANES threads. in1 holds the chosen experts.
const LANES = 16u;
const THREADS = 64u;

var<workgroup> partial: array<f32, 64>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y / step.experts;
    let slot = group.y % step.experts;
    if (row >= live_rows()) { return; }
    let output = group.x * (THREADS / LANES) + local / LANES;
    let lane = local % LANES;
    let expert = u32(arena[step.in1 + row * step.in1_stride + slot]);
    let weight_row = expert * step.cols + output; // of the whole tensor
    let here = output < step.cols && weight_row >= step.first_row && weight_row - step.first_row < step.row_count;
    var sum = 0.0;
    if (here) {
        let x = step.in0 + row * step.in0_stride + select(0u, slot * step.k, step.slotted == 1u);
        for (var g = lane; g * 32u < step.k; g += LANES) {
            unpack((weight_row - step.first_row) * step.row_bytes, g);
            let count = min(32u, step.k - g * 32u);
            for (var i = 0u; i < count; i++) { sum += v[i] * arena[x + g * 32u + i]; }
        }
    }
    partial[local] = sum;
    workgroupBarrier();
    if (here && lane == 0u) {
        var total = 0.0;
        for (var l = 0u; l < LANES; l++) { total += partial[local + l]; }
        arena[step.out0 + row * step.out0_stride + slot * step.cols + output] = total;
    }
}
