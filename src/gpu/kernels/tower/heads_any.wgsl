// uses: params.tower common/pass common/arena tower/clamp
// tower_heads_any: tower_heads in scalars, for shapes that vec4 does not fit: the axes of the large encoder rotate 36
// values.
// in0: [rows][heads][HEAD]; in1: [rows] of cosines, then sines, per axis. 16 threads per head, four heads per
// workgroup.
override HEAD: u32 = 64u; // at most 128
override AXIS: u32 = 64u; // values that one axis rotates
override ROTATE: bool = false;
override HAS_WEIGHT: bool = false;

@group(0) @binding(3) var<storage, read> weights: array<f32>;

var<workgroup> partial: array<f32, 64>;
var<workgroup> cached: array<f32, 512>; // [head][128]

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y;
    if (row >= live_rows()) { return; }
    let head = group.x * 4u + local / 16u;
    let lane = local % 16u;
    let mine = local / 16u * 128u;
    let exists = head * HEAD < params.cols;
    let x = params.in0 + row * params.in0_stride + min(head * HEAD, params.cols - HEAD);
    var squares = 0.0;
    for (var i = lane; i < HEAD; i += 16u) {
        let v = clamp1(arena[x + i], params.low0, params.high0);
        cached[mine + i] = v;
        squares += v * v;
    }
    partial[local] = squares;
    workgroupBarrier();
    var sum = 0.0;
    for (var i = 0u; i < 16u; i++) { sum += partial[local / 16u * 16u + i]; }
    let r = 1.0 / sqrt(sum / f32(HEAD) + params.eps);
    if (ROTATE) { // other threads' values are needed too
        for (var i = lane; i < HEAD; i += 16u) {
            cached[mine + i] = cached[mine + i] * r * weights[i];
        }
        workgroupBarrier();
    }
    if (!exists) { return; }
    let y = params.out0 + row * params.out0_stride + head * HEAD;
    for (var i = lane; i < HEAD; i += 16u) {
        var v = cached[mine + i];
        if (ROTATE) {
            let pairs = AXIS / 2u;
            let at = i % AXIS;
            let angle = params.in1 + row * params.in1_stride + i - at + at % pairs; // cosines of an axis, then its sines
            let c = arena[angle];
            let s = arena[angle + pairs];
            let is_first = at < pairs;
            let other = cached[mine + select(i - pairs, i + pairs, is_first)];
            v = select(other * s + v * c, v * c - other * s, is_first);
        } else {
            v *= r;
            if (HAS_WEIGHT) { v *= weights[i]; }
        }
        arena[y + i] = v;
    }
}
