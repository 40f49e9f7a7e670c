// uses: params.product common/pass common/fold common/arena type.unpack product/dot8
// linear_listed: y[i] = W[id i] x for the rows of W that a list names, f32.
// x: [rows][k]; in1: [rows][cols] ids, whole numbers in f32; y: [rows][cols]. One output per 32 threads. Ids whose
// rows are in another binding are left to its dispatch.
const LANES = 32u;
const OUTPUTS = 4u;

var<workgroup> partial: array<f32, 128>;

@compute @workgroup_size(128)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>) {
    let row = group.z;
    if (row >= live_rows()) { return; }
    let output = folded(group, groups) * OUTPUTS + local / LANES;
    let lane = local % LANES;
    let id = u32(arena[params.in1 + row * params.in1_stride + min(output, params.cols - 1u)]);
    let is_bound = output < params.cols && id >= params.first_row && id - params.first_row < params.row_count;
    var sum = 0.0;
    if (is_bound) {
        let x = params.in0 + row * params.in0_stride;
        for (var u = lane; u * 8u < params.k; u += LANES) {
            unpack8((id - params.first_row) * params.row_bytes, u);
            sum += dot8(x + u * 8u, params.k - u * 8u);
        }
    }
    partial[local] = sum;
    workgroupBarrier();
    for (var half = LANES / 2u; half > 0u; half >>= 1u) {
        if (lane < half) { partial[local] += partial[local + half]; }
        workgroupBarrier();
    }
    if (is_bound && lane == 0u) { arena[params.out0 + row * params.out0_stride + output] = partial[local]; }
}
