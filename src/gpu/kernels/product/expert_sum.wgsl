// uses: common/pass common/arena
// expert_sum: y = sum over the slots of weight * scale[expert] * x[slot], in order of the slots.
// in0: [rows][experts][cols], in1: chosen experts, in2: their weights. One thread per value.
@group(0) @binding(3) var<storage, read> weights: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) thread: vec3<u32>) {
    let c = thread.x;
    let row = thread.y;
    if (row >= live_rows() || c >= step.cols) { return; }
    var sum = 0.0;
    for (var slot = 0u; slot < step.experts; slot++) {
        let expert = u32(arena[step.in1 + row * step.in1_stride + slot]);
        var factor = arena[step.in2 + row * step.in2_stride + slot];
        if (step.has_weight == 1u) { factor *= weights[expert]; }
        sum += factor * arena[step.in0 + row * step.in0_stride + slot * step.cols + c];
    }
    arena[step.out0 + row * step.out0_stride + c] = sum;
}
