// uses: canvas/soft
// soft_sum: y = (sum of the partial sums) * scale / (sum of exponentials).
// out1: [part][rows][cols], of lists or of the whole table. One thread per value.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) thread: vec3<u32>) {
    let c = thread.x;
    let row = thread.y;
    if (row >= live_rows() || c >= params.cols) { return; }
    let y = params.out1 + row * params.cols + c;
    var sum = 0.0;
    if (all_fit()) {
        let count = listed_of(row);
        let parts = (count + part_entries(count) - 1u) / part_entries(count); // that were written
        for (var first = 0u; first < params.all_list_parts; first += params.list_parts) { // per binding
            for (var i = first; i < first + parts; i++) { sum += arena[y + i * params.out1_stride]; }
        }
    } else {
        for (var i = 0u; i < params.table_parts; i++) { sum += arena[y + i * params.out1_stride]; }
    }
    let total = arena[params.in1 + (params.first_wanted + row) * params.in1_stride + 4u];
    arena[params.out0 + (params.first_wanted + row) * params.out0_stride + c] = sum * (params.scale / total);
}
