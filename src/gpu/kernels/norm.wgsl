// rms_norm: one workgroup per group of `width` values.
@group(0) @binding(3) var<storage, read> weights: array<f32>;

var<workgroup> partial: array<f32, 256>;

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y;
    if (row >= live_rows()) { return; }
    let x = step.in0 + row * step.in0_stride + group.x * step.width;
    let y = step.out0 + row * step.out0_stride + group.x * step.width;
    var sum = 0.0;
    for (var i = local; i < step.width; i += 256u) { sum += arena[x + i] * arena[x + i]; }
    partial[local] = sum;
    workgroupBarrier();
    for (var half = 128u; half > 0u; half >>= 1u) {
        if (local < half) { partial[local] += partial[local + half]; }
        workgroupBarrier();
    }
    let r = 1.0 / sqrt(partial[0] / f32(step.width) + step.eps);
    for (var i = local; i < step.width; i += 256u) {
        var w = 1.0;
        if (step.has_weight == 1u) { w = weights[i]; }
        arena[y + i] = arena[x + i] * r * w;
    }
}
