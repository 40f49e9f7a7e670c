// uses: params.tower common/pass common/arena4 tower/clamp <output>
// tower_heads: y = rope(rms_norm(clamp(x)) * weights) per head, as far as the encoder has each (ROTATE, HAS_WEIGHT), as
// vec4: HEAD is a multiple of 4 and AXIS of 8.
// in0: [rows][heads][HEAD]; in1: [rows] of cosines, then sines, per axis. 16 threads per head, four heads per
// workgroup.
override HEAD: u32 = 64u; // at most 128
override AXIS: u32 = 64u; // values that one axis rotates
override ROTATE: bool = false;
override HAS_WEIGHT: bool = false;
const F16_BINDING = 4u;

@group(0) @binding(3) var<storage, read> weights: array<vec4<f32>>;

var<workgroup> partial: array<f32, 64>;
var<workgroup> cached: array<vec4<f32>, 128>; // [head][32]

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y;
    if (row >= live_rows()) { return; }
    let head = group.x * 4u + local / 16u;
    let lane = local % 16u;
    let mine = local / 16u * 32u;
    let exists = head * HEAD < params.cols;
    let x = (params.in0 + row * params.in0_stride + min(head * HEAD, params.cols - HEAD)) / 4u;
    var squares = 0.0;
    for (var i = lane; i < HEAD / 4u; i += 16u) {
        let v = clamp4(arena4[x + i], vec2<f32>(params.low0, params.high0));
        cached[mine + i] = v;
        squares += dot(v, v);
    }
    partial[local] = squares;
    workgroupBarrier();
    var sum = 0.0;
    for (var i = 0u; i < 16u; i++) { sum += partial[local / 16u * 16u + i]; }
    let r = 1.0 / sqrt(sum / f32(HEAD) + params.eps);
    if (ROTATE) { // other threads' values are needed too
        for (var i = lane; i < HEAD / 4u; i += 16u) { cached[mine + i] = cached[mine + i] * r * weights[i]; }
        workgroupBarrier();
    }
    if (!exists) { return; }
    for (var i = lane; i < HEAD / 4u; i += 16u) {
        var v = cached[mine + i];
        if (ROTATE) {
            let pairs = AXIS / 8u; // vectors
            let at = i % (AXIS / 4u);
            let angle = (params.in1 + row * params.in1_stride) / 4u + i - at + at % pairs; // cosines of an axis, then its sines
            let c = arena4[angle];
            let s = arena4[angle + pairs];
            let is_first = at < pairs;
            let other = cached[mine + select(i - pairs, i + pairs, is_first)];
            v = select(other * s + v * c, v * c - other * s, is_first);
        } else {
            v *= r;
            if (HAS_WEIGHT) { v *= weights[i]; }
        }
        store4(params.out0, params.out0_stride, row, head * (HEAD / 4u) + i, v);
    }
}
