// clamp, rms_norm of a head, rope, as far as a tower has them, in shapes that heads4.wgsl does not take: the large tower's axes
// turn 36 values. 16 threads to a head, four heads to a workgroup.
override HEAD: u32 = 64u;   // at most 128
override AXIS: u32 = 64u;   // values that one axis turns
override TURNS: bool = false;
override WEIGHED: bool = false;

@group(0) @binding(3) var<storage, read> weights: array<f32>;

var<workgroup> partial: array<f32, 64>;
var<workgroup> held: array<f32, 512>; // [head][128]

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y;
    if (row >= live_rows()) { return; }
    let head = group.x * 4u + local / 16u;
    let lane = local % 16u;
    let mine = local / 16u * 128u;
    let is_there = head * HEAD < step.cols;
    let x = step.in0 + row * step.in0_stride + min(head * HEAD, step.cols - HEAD);
    var squares = 0.0;
    for (var i = lane; i < HEAD; i += 16u) {
        let v = one_between(arena[x + i], step.bounds01.x, step.bounds01.y);
        held[mine + i] = v;
        squares += v * v;
    }
    partial[local] = squares;
    workgroupBarrier();
    var sum = 0.0;
    for (var i = 0u; i < 16u; i++) { sum += partial[local / 16u * 16u + i]; }
    let r = 1.0 / sqrt(sum / f32(HEAD) + step.eps);
    if (TURNS) { // its neighbours' values are needed too
        for (var i = lane; i < HEAD; i += 16u) {
            held[mine + i] = held[mine + i] * r * weights[i];
        }
        workgroupBarrier();
    }
    if (!is_there) { return; }
    let y = step.out0 + row * step.out0_stride + head * HEAD;
    for (var i = lane; i < HEAD; i += 16u) {
        var v = held[mine + i];
        if (TURNS) {
            let pairs = AXIS / 2u;
            let at = i % AXIS;
            let angle = step.in1 + row * step.in1_stride + i - at + at % pairs; // cosines of an axis, then its sines
            let c = arena[angle];
            let s = arena[angle + pairs];
            let is_first = at < pairs;
            let other = held[mine + select(i - pairs, i + pairs, is_first)];
            v = select(other * s + v * c, v * c - other * s, is_first);
        } else {
            v *= r;
            if (WEIGHED) { v *= weights[i]; }
        }
        arena[y + i] = v;
    }
}
