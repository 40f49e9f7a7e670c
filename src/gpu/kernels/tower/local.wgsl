// uses: params.tower common/pass common/arena common/tanh
// tower_local: attention over the last `window` rows in two steps (SUM), unfused: weights = softmax(softcap(q (k +
// far))), then y = sum of weights * v. Audio encoder. One thread per row and head, or per value.
override SUM: bool = false;

fn scores(row: u32, head: u32) {
    let visible = min(row + 1u, params.window);
    let q = params.in0 + row * params.in0_stride + head * params.width;
    let out = params.out0 + row * params.out0_stride + head * params.window;
    var high = -3.0e38;
    for (var d = 0u; d < visible; d++) {
        let k = params.in1 + (row - d) * params.in1_stride + head * params.width;
        let far = params.in2 + d * params.in2_stride + head * params.width;
        var s = 0.0;
        for (var i = 0u; i < params.width; i++) { s += arena[q + i] * (arena[k + i] + arena[far + i]); }
        s = params.scale * exact_tanh(s / params.scale);
        arena[out + d] = s;
        high = max(high, s);
    }
    var total = 0.0;
    for (var d = 0u; d < visible; d++) {
        let e = exp(max(arena[out + d] - high, -80.0));
        arena[out + d] = e;
        total += e;
    }
    for (var d = 0u; d < params.window; d++) { arena[out + d] = select(arena[out + d] / total, 0.0, d >= visible); }
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) thread: vec3<u32>) {
    let row = thread.y;
    if (row >= live_rows()) { return; }
    if (!SUM) {
        if (thread.x < params.heads) { scores(row, thread.x); }
        return;
    }
    let c = thread.x;
    if (c >= params.cols) { return; }
    let weights = params.in0 + row * params.in0_stride + c / params.width * params.window;
    var y = 0.0;
    for (var d = 0u; d < min(row + 1u, params.window); d++) { y += arena[weights + d] * arena[params.in1 + (row - d) * params.in1_stride + c]; }
    arena[params.out0 + row * params.out0_stride + c] = y;
}
