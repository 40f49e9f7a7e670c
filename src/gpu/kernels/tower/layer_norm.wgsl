// uses: params.tower common/pass common/arena tower/clamp tower/weights
// tower_layer_norm: y = (x - mean) / sqrt(variance + eps) * weight, and relu (RELU). Audio encoder.
// in0: [rows][groups][width]. One workgroup per group of `width` values.
override RELU: bool = false;

var<workgroup> partial: array<f32, 64>;

fn total(local: u32, mine: f32) -> f32 {
    workgroupBarrier();
    partial[local] = mine;
    workgroupBarrier();
    for (var half = 32u; half > 0u; half >>= 1u) {
        if (local < half) { partial[local] += partial[local + half]; }
        workgroupBarrier();
    }
    return partial[0];
}

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y;
    if (row >= live_rows()) { return; }
    let x = params.in0 + row * params.in0_stride + group.x * params.width;
    let y = params.out0 + row * params.out0_stride + group.x * params.width;
    var sum = 0.0;
    for (var i = local; i < params.width; i += 64u) { sum += arena[x + i]; }
    let mean = total(local, sum) / f32(params.width);
    var squares = 0.0;
    for (var i = local; i < params.width; i += 64u) {
        let d = arena[x + i] - mean;
        squares += d * d;
    }
    let r = 1.0 / sqrt(total(local, squares) / f32(params.width) + params.eps);
    for (var i = local; i < params.width; i += 64u) {
        let v = (arena[x + i] - mean) * r * weight_at(i);
        arena[y + i] = select(v, clamp1(v, 0.0, 3.0e38), RELU);
    }
}
