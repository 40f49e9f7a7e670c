// combine: the splits of attend_few.wgsl put together, in order. One workgroup per row and head.
override SPLITS: u32 = 16u;

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let head = group.x;
    let row = group.y;
    if (row >= live_rows()) { return; }
    let d = step.width;
    let parts = step.out1 + (row * step.heads + head) * SPLITS * (d + 2u);
    var best = -3.0e38;
    for (var s = 0u; s < SPLITS; s++) { best = max(best, arena[parts + s * (d + 2u)]); }
    let y = step.out0 + row * step.out0_stride + head * d;
    for (var i = local; i < d; i += 256u) {
        var total = 0.0;
        var sum = 0.0;
        for (var s = 0u; s < SPLITS; s++) {
            let part = parts + s * (d + 2u);
            let share = exp(max(arena[part] - best, -80.0));
            total += share * arena[part + 1u];
            sum += share * arena[part + 2u + i];
        }
        arena[y + i] = sum / total;
    }
}
