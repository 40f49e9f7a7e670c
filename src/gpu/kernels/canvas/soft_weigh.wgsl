// uses: canvas/soft
// soft_weigh: logits -> e = exp(z - peak) in place, and counts by size.
// in0: [rows][k]; in1: [rows] of the results of logit_stats. One workgroup per range.
var<workgroup> count: array<atomic<u32>, BINS>;

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y;
    if (row >= live_rows()) { return; }
    if (local < BINS) { atomicStore(&count[local], 0u); }
    let peak = arena[params.in1 + (params.first_wanted + row) * params.in1_stride + 3u];
    let z0 = params.in0 + row * params.in0_stride;
    workgroupBarrier();
    for (var i = 0u; i < 8u; i++) {
        let v = group.x * RANGE + i * 256u + local;
        if (v < params.vocab) {
            let e = exp_below(scaled_logit(z0 + v), peak);
            arena[z0 + v] = e;
            if (e > 0.0) { atomicAdd(&count[bin_of(e)], 1u); }
        }
    }
    workgroupBarrier();
    if (local < PAIRS) {
        arena[counts_of(row, group.x) + local] = f32(atomicLoad(&count[2u * local])) + PAIR_BASE * f32(atomicLoad(&count[2u * local + 1u]));
    }
}
