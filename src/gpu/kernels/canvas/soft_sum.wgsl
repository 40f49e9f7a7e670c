// uses: canvas/soft
// soft_sum: y = (sum of the partial sums) * scale / (sum of exponentials).
// out1: [part][rows][cols], `kv_heads` parts of lists or `parts` of the whole table. One thread per value.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) thread: vec3<u32>) {
    let c = thread.x;
    let row = thread.y;
    if (row >= live_rows() || c >= step.cols) { return; }
    let y = step.out1 + row * step.cols + c;
    var sum = 0.0;
    if (all_fit()) {
        let count = listed_of(row);
        let parts = (count + part_entries(count) - 1u) / part_entries(count); // that were written
        for (var first = 0u; first < step.kv_heads; first += step.experts) { // per binding
            for (var i = first; i < first + parts; i++) { sum += arena[y + i * step.out1_stride]; }
        }
    } else {
        for (var i = 0u; i < step.parts; i++) { sum += arena[y + i * step.out1_stride]; }
    }
    let total = arena[step.in1 + (step.row0 + row) * step.in1_stride + 4u];
    arena[step.out0 + (step.row0 + row) * step.out0_stride + c] = sum * (step.scale / total);
}
