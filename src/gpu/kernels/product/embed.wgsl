// uses: common/pass common/arena type.unpack <lookup>
// embed: y = table[token] * scale, the first step of a pass, and per-layer embeddings.
// table: [vocabulary][cols]; y: [rows][cols]. One thread per eight values.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) thread: vec3<u32>) {
    let row = thread.y;
    let u = thread.x;
    if (row >= live_rows() || u * 8u >= step.cols) { return; }
    if (step.slotted == 1u && is_soft(row)) { return; } // the host has written it
    let id = table_row(row);
    if (id < step.first_row || id - step.first_row >= step.row_count) { return; } // in another binding
    unpack8((id - step.first_row) * step.row_bytes, u);
    let y = step.out0 + row * step.out0_stride + u * 8u;
    for (var i = 0u; i < 8u; i++) {
        if (u * 8u + i < step.cols) { arena[y + i] = select(wb, wa, i < 4u)[i & 3u] * step.scale; }
    }
}
