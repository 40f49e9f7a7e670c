// uses: common/pass common/arena common/tanh
// tower_local: attention over the last `window` rows in two steps (SUM), unfused: weights = softmax(softcap(q (k +
// far))), then y = sum of weights * v. Audio encoder. One thread per row and head, or per value.
override SUM: bool = false;

fn scores(row: u32, head: u32) {
    let visible = min(row + 1u, step.window);
    let q = step.in0 + row * step.in0_stride + head * step.width;
    let out = step.out0 + row * step.out0_stride + head * step.window;
    var high = -3.0e38;
    for (var d = 0u; d < visible; d++) {
        let k = step.in1 + (row - d) * step.in1_stride + head * step.width;
        let far = step.in2 + d * step.in2_stride + head * step.width;
        var s = 0.0;
        for (var i = 0u; i < step.width; i++) { s += arena[q + i] * (arena[k + i] + arena[far + i]); }
        s = step.scale * exact_tanh(s / step.scale);
        arena[out + d] = s;
        high = max(high, s);
    }
    var total = 0.0;
    for (var d = 0u; d < visible; d++) {
        let e = exp(max(arena[out + d] - high, -80.0));
        arena[out + d] = e;
        total += e;
    }
    for (var d = 0u; d < step.window; d++) { arena[out + d] = select(arena[out + d] / total, 0.0, d >= visible); }
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) thread: vec3<u32>) {
    let row = thread.y;
    if (row >= live_rows()) { return; }
    if (!SUM) {
        if (thread.x < step.heads) { scores(row, thread.x); }
        return;
    }
    let c = thread.x;
    if (c >= step.cols) { return; }
    let weights = step.in0 + row * step.in0_stride + c / step.width * step.window;
    var y = 0.0;
    for (var d = 0u; d < min(row + 1u, step.window); d++) { y += arena[weights + d] * arena[step.in1 + (row - d) * step.in1_stride + c]; }
    arena[step.out0 + row * step.out0_stride + c] = y;
}
