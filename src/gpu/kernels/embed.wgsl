// embed: a token's row of a table, times a constant. One thread per eight values. Behind a file of table/.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) thread: vec3<u32>) {
    let row = thread.y;
    let u = thread.x;
    if (row >= live_rows() || u * 8u >= step.cols) { return; }
    if (step.slotted == 1u && is_soft(row)) { return; } // the host has put it there
    let id = table_row(row);
    if (id < step.first_row || id - step.first_row >= step.row_count) { return; } // in another binding
    eight((id - step.first_row) * step.row_bytes, u);
    let place = step.out0 + row * step.out0_stride + u * 8u;
    for (var i = 0u; i < 8u; i++) {
        if (u * 8u + i < step.cols) { arena[place + i] = select(wb, wa, i < 4u)[i & 3u] * step.scale; }
    }
}
