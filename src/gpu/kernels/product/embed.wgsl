// uses: params.embed common/pass common/arena type.unpack <lookup>
// embed: y = table[token] * scale, the first step of a pass, and per-layer embeddings.
// table: [vocabulary][cols]; y: [rows][cols]. One thread per eight values.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) thread: vec3<u32>) {
    let row = thread.y;
    let u = thread.x;
    if (row >= live_rows() || u * 8u >= params.cols) { return; }
    if (params.skip_soft == 1u && is_soft(row)) { return; } // the host has written it
    let id = table_row(row);
    if (id < params.first_row || id - params.first_row >= params.row_count) { return; } // in another binding
    unpack8((id - params.first_row) * params.row_bytes, u);
    let y = params.out0 + row * params.out0_stride + u * 8u;
    for (var i = 0u; i < 8u; i++) {
        if (u * 8u + i < params.cols) { arena[y + i] = select(wb, wa, i < 4u)[i & 3u] * params.scale; }
    }
}
