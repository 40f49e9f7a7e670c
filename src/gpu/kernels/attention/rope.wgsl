// uses: common/pass common/arena
// rope: rotates pairs (i, i + width / 2) of each head: (a, b) -> (a cos - b sin, a sin + b cos).
// in0: [rows][heads][width]; in1: [rows][axes][width] cosines, then sines, computed by the host since a shader's cosine
// is not exact enough. One thread per pair.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) thread: vec3<u32>) {
    let row = thread.y;
    let pairs = step.width / 2u;
    let head = thread.x / pairs;
    let i = thread.x % pairs;
    if (row >= live_rows() || head * step.width >= step.cols) { return; }
    let angles = step.in1 + row * step.in1_stride + head % max(step.experts, 1u) * step.width; // heads cycle through the axes
    let c = arena[angles + i];
    let s = arena[angles + pairs + i];
    let x = step.in0 + row * step.in0_stride + head * step.width + i;
    let y = step.out0 + row * step.out0_stride + head * step.width + i;
    let a = arena[x];
    let b = arena[x + pairs];
    arena[y] = a * c - b * s;
    arena[y + pairs] = a * s + b * c;
}
