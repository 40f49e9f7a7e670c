// uses: params.canvas common/arena4
// soft_embed where columns are a multiple of 16, and offsets, strides and the tokens of a binding are multiples of
// four.
fn listed_total() -> u32 { return u32(arena4[params.counts / 4u].x); }

// Four tokens, all before `end` or all past it.
fn load_e(at: u32, token: u32, end: u32) -> vec4<f32> { return select(vec4<f32>(), arena4[(at + token) / 4u], token < end); }

fn store4(y: u32, column: u32, v: vec4<f32>) {
    if (column < params.cols) { arena4[(y + column) / 4u] = v; }
}
