// uses: params.product common/pass common/arena type.unpack product/dot8
// expert_linear: y[slot] = W[expert of slot] x for up to 8 rows of any shape, f32.
// in1: [rows][slots] chosen experts; x: [rows][k], or [rows][slots][k] (input_per_slot). One output of one slot per 32
// threads.
const LANES = 32u;
const OUTPUTS = 4u;

var<workgroup> partial: array<f32, 128>;

@compute @workgroup_size(128)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y / params.slots;
    let slot = group.y % params.slots;
    if (row >= live_rows()) { return; }
    let output = group.x * OUTPUTS + local / LANES;
    let lane = local % LANES;
    let expert = u32(arena[params.in1 + row * params.in1_stride + slot]);
    let weight_row = expert * params.cols + output; // in the whole tensor
    let is_bound = output < params.cols && weight_row >= params.first_row && weight_row - params.first_row < params.row_count;
    var sum = 0.0;
    if (is_bound) {
        let x = params.in0 + row * params.in0_stride + select(0u, slot * params.k, params.input_per_slot == 1u);
        for (var u = lane; u * 8u < params.k; u += LANES) {
            unpack8((weight_row - params.first_row) * params.row_bytes, u);
            sum += dot8(x + u * 8u, params.k - u * 8u);
        }
    }
    partial[local] = sum;
    workgroupBarrier();
    for (var half = LANES / 2u; half > 0u; half >>= 1u) {
        if (lane < half) { partial[local] += partial[local + half]; }
        workgroupBarrier();
    }
    if (is_bound && lane == 0u) { arena[params.out0 + row * params.out0_stride + slot * params.cols + output] = partial[local]; }
}
