// uses: params.expert common/pass common/arena
// expert_sum: y = sum over the slots of weight * scale[expert] * x[slot], in order of the slots.
// in0: [rows][slots][cols], in1: chosen experts, in2: their weights. One thread per value. SLOTS is an override,
// so that the loads of all slots are in flight together.
override SLOTS: u32 = 1u; // experts that a row has chosen

@group(0) @binding(3) var<storage, read> weights: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) thread: vec3<u32>) {
    let c = thread.x;
    let row = thread.y;
    if (row >= live_rows() || c >= params.cols) { return; }
    var sum = 0.0;
    for (var slot = 0u; slot < SLOTS; slot++) {
        let expert = u32(arena[params.in1 + row * params.in1_stride + slot]);
        var factor = arena[params.in2 + row * params.in2_stride + slot];
        if (params.has_weight == 1u) { factor *= weights[expert]; }
        sum += factor * arena[params.in0 + row * params.in0_stride + slot * params.cols + c];
    }
    arena[params.out0 + row * params.out0_stride + c] = sum;
}
