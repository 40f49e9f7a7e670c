// Tiles where k is a multiple of K_STEP, and places, strides and outputs are multiples of four.
fn input4(at: u32, k: u32) -> vec4<f32> { return arena4[(at + k) / 4u]; }

fn keep8(k: u32) {}
fn keep_two(k: u32, other: u32) {}

fn put4(t: Tile, y: u32, output: u32, v: vec4<f32>) {
    if (output >= t.low && output < t.high) { arena4[(y + output) / 4u] = v; }
}
