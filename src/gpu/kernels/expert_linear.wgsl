// expert_linear: one output of one slot per 32 threads. in1 holds the chosen experts.
const LANES = 32u;
const OUTPUTS = 4u;

var<workgroup> partial: array<f32, 128>;

@compute @workgroup_size(128)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y / step.experts;
    let slot = group.y % step.experts;
    if (row >= live_rows()) { return; }
    let output = group.x * OUTPUTS + local / LANES;
    let lane = local % LANES;
    let expert = u32(arena[step.in1 + row * step.in1_stride + slot]);
    let weight_row = expert * step.cols + output; // of the whole tensor
    let here = output < step.cols && weight_row >= step.first_row && weight_row - step.first_row < step.row_count;
    var sum = 0.0;
    if (here) {
        let x = step.in0 + row * step.in0_stride + select(0u, slot * step.k, step.slotted == 1u);
        for (var u = lane; u * 8u < step.k; u += LANES) {
            eight((weight_row - step.first_row) * step.row_bytes, u);
            sum += times(x + u * 8u, step.k - u * 8u);
        }
    }
    partial[local] = sum;
    workgroupBarrier();
    for (var half = LANES / 2u; half > 0u; half >>= 1u) {
        if (lane < half) { partial[local] += partial[local + half]; }
        workgroupBarrier();
    }
    if (here && lane == 0u) { arena[step.out0 + row * step.out0_stride + slot * step.cols + output] = partial[local]; }
}
