// soft_embed where columns are a multiple of 16, and places, strides and the pieces' tokens multiples of four.
fn listed_in_all() -> u32 { return u32(arena4[step.in2 / 4u].x); }

// Of four tokens that begin before the end or behind it.
fn e4(at: u32, token: u32, end: u32) -> vec4<f32> { return select(vec4<f32>(), arena4[(at + token) / 4u], token < end); }

fn put4(y: u32, column: u32, v: vec4<f32>) {
    if (column < step.cols) { arena4[(y + column) / 4u] = v; }
}
