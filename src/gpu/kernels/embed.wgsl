// embed: a token's row of a table, times a constant. One thread per group of 32 values.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) thread: vec3<u32>) {
    let row = thread.y;
    let g = thread.x;
    if (row >= live_rows() || g * 32u >= step.cols) { return; }
    let id = token_of(row);
    if (id < step.first_row || id - step.first_row >= step.row_count) { return; } // in another binding
    unpack((id - step.first_row) * step.row_bytes, g);
    let place = step.out0 + row * step.out0_stride + g * 32u;
    let n = min(32u, step.cols - g * 32u);
    for (var i = 0u; i < n; i++) { arena[place + i] = v[i] * step.scale; }
}
