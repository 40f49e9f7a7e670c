// clamp, rms_norm of a head, rope, as heads.wgsl does them, four values at a time: where heads are a multiple of four and
// what an axis turns is one of eight. 16 threads to a head, four heads to a workgroup.
override HEAD: u32 = 64u;   // at most 128
override AXIS: u32 = 64u;   // values that one axis turns
override TURNS: bool = false;
override WEIGHED: bool = false;
const HALVES_AT = 4u;

@group(0) @binding(3) var<storage, read> weights: array<vec4<f32>>;

var<workgroup> partial: array<f32, 64>;
var<workgroup> held: array<vec4<f32>, 128>; // [head][32]

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y;
    if (row >= live_rows()) { return; }
    let head = group.x * 4u + local / 16u;
    let lane = local % 16u;
    let mine = local / 16u * 32u;
    let is_there = head * HEAD < step.cols;
    let x = (step.in0 + row * step.in0_stride + min(head * HEAD, step.cols - HEAD)) / 4u;
    var squares = 0.0;
    for (var i = lane; i < HEAD / 4u; i += 16u) {
        let v = between(arena4[x + i], step.bounds01.xy);
        held[mine + i] = v;
        squares += dot(v, v);
    }
    partial[local] = squares;
    workgroupBarrier();
    var sum = 0.0;
    for (var i = 0u; i < 16u; i++) { sum += partial[local / 16u * 16u + i]; }
    let r = 1.0 / sqrt(sum / f32(HEAD) + step.eps);
    if (TURNS) { // its neighbours' values are needed too
        for (var i = lane; i < HEAD / 4u; i += 16u) { held[mine + i] = held[mine + i] * r * weights[i]; }
        workgroupBarrier();
    }
    if (!is_there) { return; }
    for (var i = lane; i < HEAD / 4u; i += 16u) {
        var v = held[mine + i];
        if (TURNS) {
            let pairs = AXIS / 8u; // vectors
            let at = i % (AXIS / 4u);
            let angle = (step.in1 + row * step.in1_stride) / 4u + i - at + at % pairs; // cosines of an axis, then its sines
            let c = arena4[angle];
            let s = arena4[angle + pairs];
            let is_first = at < pairs;
            let other = held[mine + select(i - pairs, i + pairs, is_first)];
            v = select(other * s + v * c, v * c - other * s, is_first);
        } else {
            v *= r;
            if (WEIGHED) { v *= weights[i]; }
        }
        keep4(step.out0, step.out0_stride, row, head * (HEAD / 4u) + i, v);
    }
}
