// rope: heads of `width` values turned by the table in1 (cosines, then sines; the host computes it,
// since a shader's own cosine is not exact enough). One thread per pair.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) thread: vec3<u32>) {
    let row = thread.y;
    let pairs = step.width / 2u;
    let head = thread.x / pairs;
    let i = thread.x % pairs;
    if (row >= live_rows() || head * step.width >= step.cols) { return; }
    let table = step.in1 + row * step.in1_stride + head % max(step.experts, 1u) * step.width; // axes take turns
    let c = arena[table + i];
    let s = arena[table + pairs + i];
    let x = step.in0 + row * step.in0_stride + head * step.width + i;
    let y = step.out0 + row * step.out0_stride + head * step.width + i;
    let a = arena[x];
    let b = arena[x + pairs];
    arena[y] = a * c - b * s;
    arena[y + pairs] = a * s + b * c;
}
