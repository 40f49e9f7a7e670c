// soft_embed, the end: shares together, divided by the sum of exponentials, times a constant. `kv_heads` shares of lists, as
// far as there are so many, or `parts` of the whole table.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) thread: vec3<u32>) {
    let c = thread.x;
    let row = thread.y;
    if (row >= live_rows() || c >= step.cols) { return; }
    let y = step.out1 + row * step.cols + c;
    var sum = 0.0;
    if (listed()) {
        let kept = kept_of(row);
        let shares = (kept + share_entries(kept) - 1u) / share_entries(kept); // that were written
        for (var first = 0u; first < step.kv_heads; first += step.experts) { // a binding's
            for (var i = first; i < first + shares; i++) { sum += arena[y + i * step.out1_stride]; }
        }
    } else {
        for (var i = 0u; i < step.parts; i++) { sum += arena[y + i * step.out1_stride]; }
    }
    let total = arena[step.in1 + (step.row0 + row) * step.in1_stride + 4u];
    arena[step.out0 + (step.row0 + row) * step.out0_stride + c] = sum * (step.scale / total);
}
