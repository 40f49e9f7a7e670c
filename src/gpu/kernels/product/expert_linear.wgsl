// uses: common/pass common/arena type.unpack product/dot8
// expert_linear: y[slot] = W[expert of slot] x for up to 8 rows of any shape, f32.
// in1: [rows][experts] chosen experts; x: [rows][k], or [rows][experts][k] (slotted). One output of one slot per 32
// threads.
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
    let weight_row = expert * step.cols + output; // in the whole tensor
    let is_bound = output < step.cols && weight_row >= step.first_row && weight_row - step.first_row < step.row_count;
    var sum = 0.0;
    if (is_bound) {
        let x = step.in0 + row * step.in0_stride + select(0u, slot * step.k, step.slotted == 1u);
        for (var u = lane; u * 8u < step.k; u += LANES) {
            unpack8((weight_row - step.first_row) * step.row_bytes, u);
            sum += dot8(x + u * 8u, step.k - u * 8u);
        }
    }
    partial[local] = sum;
    workgroupBarrier();
    for (var half = LANES / 2u; half > 0u; half >>= 1u) {
        if (lane < half) { partial[local] += partial[local + half]; }
        workgroupBarrier();
    }
    if (is_bound && lane == 0u) { arena[step.out0 + row * step.out0_stride + slot * step.cols + output] = partial[local]; }
}
