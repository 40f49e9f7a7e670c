// Attention over the last `window` rows (at most 16) with everything around it: queries and keys between bounds and
// scaled, values and the result between bounds. 16 threads to a head, four heads of one row to a workgroup; vectors are
// read where they lie, since neighbours read nearly the same.
override HEAD: u32 = 128u; // a multiple of 4, at most 256
override FAR: u32 = 12u;   // the window
const VECTORS = 4u;        // of a thread

@group(0) @binding(3) var<storage, read> weights: array<vec4<f32>>; // of the query, by value of the head

var<workgroup> partial: array<f32, 1024>; // [distance][thread]
var<workgroup> share: array<f32, 64>;     // [head][16]

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y;
    if (row >= live_rows()) { return; }
    let lane = local % 16u;
    let head = min(group.x * 4u + local / 16u, step.heads - 1u);
    let is_there = group.x * 4u + local / 16u < step.heads;
    let seen = min(row + 1u, FAR);
    let column = head * HEAD / 4u;
    var query: array<vec4<f32>, VECTORS>;
    for (var t = 0u; t < (HEAD + 63u) / 64u; t++) {
        let i = lane + 16u * t;
        query[t] = vec4<f32>();
        if (i < HEAD / 4u) {
            query[t] = between(arena4[(step.in0 + row * step.in0_stride) / 4u + column + i], step.bounds01.xy) * step.scale * weights[i];
        }
    }
    for (var d = 0u; d < seen; d++) {
        let k = (step.in1 + (row - d) * step.in1_stride) / 4u + column;
        let far = (step.part1_out + d * step.part1_stride) / 4u + column;
        var s = 0.0;
        for (var t = 0u; t < (HEAD + 63u) / 64u; t++) {
            let i = lane + 16u * t;
            if (i < HEAD / 4u) { s += dot(query[t], between(arena4[k + i], step.bounds01.zw) * step.eps2 + arena4[far + i]); }
        }
        partial[d * 64u + local] = s;
    }
    workgroupBarrier();
    if (lane < seen) {
        var s = 0.0;
        for (var i = 0u; i < 16u; i++) { s += partial[lane * 64u + local / 16u * 16u + i]; }
        share[local] = step.cap * exact_tanh(s / step.cap);
    }
    workgroupBarrier();
    let mine = local / 16u * 16u;
    var high = -3.0e38;
    for (var d = 0u; d < seen; d++) { high = max(high, share[mine + d]); }
    var y: array<vec4<f32>, VECTORS>;
    for (var t = 0u; t < VECTORS; t++) { y[t] = vec4<f32>(); }
    var total = 0.0;
    for (var d = 0u; d < seen; d++) {
        let e = exp(max(share[mine + d] - high, -80.0));
        let v = (step.in2 + (row - d) * step.in2_stride) / 4u + column;
        total += e;
        for (var t = 0u; t < (HEAD + 63u) / 64u; t++) {
            let i = lane + 16u * t;
            if (i < HEAD / 4u) { y[t] += e * between(arena4[v + i], step.bounds23.xy); }
        }
    }
    if (!is_there) { return; }
    for (var t = 0u; t < (HEAD + 63u) / 64u; t++) {
        let i = lane + 16u * t;
        if (i < HEAD / 4u) {
            arena4[(step.out0 + row * step.out0_stride) / 4u + column + i] = between(y[t] / total, step.bounds23.zw);
        }
    }
}
