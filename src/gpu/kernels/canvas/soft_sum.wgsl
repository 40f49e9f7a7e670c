// soft_embed, the end: shares together, divided by the sum of exponentials, times a constant. `kv_heads` shares of lists,
// or `parts` of the whole table.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) thread: vec3<u32>) {
    let c = thread.x;
    let row = thread.y;
    if (row >= live_rows() || c >= step.cols) { return; }
    let n = select(step.parts, step.kv_heads, listed());
    var sum = 0.0;
    for (var i = 0u; i < n; i++) { sum += arena[step.out1 + i * step.out1_stride + row * step.cols + c]; }
    let total = arena[step.in1 + (step.row0 + row) * step.in1_stride + 4u];
    arena[step.out0 + (step.row0 + row) * step.out0_stride + c] = sum * (step.scale / total);
}
