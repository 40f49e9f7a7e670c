// uses: params.attention common/pass common/arena
// rope: rotates pairs (i, i + width / 2) of each head: (a, b) -> (a cos - b sin, a sin + b cos).
// in0: [rows][heads][width]; in1: [rows][axes][width] cosines, then sines, computed by the host since a shader's cosine
// is not exact enough. One thread per pair.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) thread: vec3<u32>) {
    let row = thread.y;
    let pairs = params.width / 2u;
    let head = thread.x / pairs;
    let i = thread.x % pairs;
    if (row >= live_rows() || head * params.width >= params.cols) { return; }
    let angles = params.in1 + row * params.in1_stride + head % max(params.axes, 1u) * params.width; // heads cycle through the axes
    let c = arena[angles + i];
    let s = arena[angles + pairs + i];
    let x = params.in0 + row * params.in0_stride + head * params.width + i;
    let y = params.out0 + row * params.out0_stride + head * params.width + i;
    let a = arena[x];
    let b = arena[x + pairs];
    arena[y] = a * c - b * s;
    arena[y + pairs] = a * s + b * c;
}
