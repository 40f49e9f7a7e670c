// uses: params.product common/arena4
// Tiles (product/tile) where k is a multiple of K_STEP, and offsets, strides and outputs are multiples of four.
fn input4(at: u32, k: u32) -> vec4<f32> { return arena4[(at + k) / 4u]; }

fn mask8(k: u32) {}
fn mask_pair(k: u32, other: u32) {}

fn store4(t: Tile, y: u32, output: u32, v: vec4<f32>) {
    if (output >= t.low && output < t.high) { arena4[(y + output) / 4u] = v; }
}
