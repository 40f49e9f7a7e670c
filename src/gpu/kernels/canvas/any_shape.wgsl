// uses: params.canvas common/arena
// soft_embed of any shape.
fn listed_total() -> u32 { return u32(arena[params.counts]); }

fn load_e(at: u32, token: u32, end: u32) -> vec4<f32> {
    var e = vec4<f32>();
    for (var j = 0u; j < 4u; j++) {
        if (token + j < end) { e[j] = arena[at + token + j]; }
    }
    return e;
}

fn store4(y: u32, column: u32, v: vec4<f32>) {
    for (var j = 0u; j < 4u; j++) {
        if (column + j < params.cols) { arena[y + column + j] = v[j]; }
    }
}
