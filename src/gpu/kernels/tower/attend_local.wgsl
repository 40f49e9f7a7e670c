// uses: params.tower common/pass common/arena4 tower/clamp common/tanh
// tower_attend_local: attention over the last WINDOW rows (at most 16) with the clamps and scales around it. Audio encoder.
//   q = clamp(in0) * scale * weights;  k = clamp(in1) * key_scale;  s = cap * tanh(q (k + far) / cap)
//   y = clamp(softmax(s) clamp(in2))
// in0, in1, in2: [rows][heads][HEAD]; far: [WINDOW][heads][HEAD].
//
// 16 threads per head, four heads of one row per workgroup; vectors are read in place, since neighbors read nearly the
// same.
override HEAD: u32 = 128u;  // a multiple of 4, at most 256
override WINDOW: u32 = 12u; // the window
const VECTORS = 4u;         // per thread

@group(0) @binding(3) var<storage, read> weights: array<vec4<f32>>; // of the query, [HEAD]

var<workgroup> partial: array<f32, 1024>; // [distance][thread]
var<workgroup> weight: array<f32, 64>;    // [head][16]

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y;
    if (row >= live_rows()) { return; }
    let lane = local % 16u;
    let head = min(group.x * 4u + local / 16u, params.heads - 1u);
    let exists = group.x * 4u + local / 16u < params.heads;
    let visible = min(row + 1u, WINDOW);
    let column = head * HEAD / 4u;
    var query: array<vec4<f32>, VECTORS>;
    for (var t = 0u; t < (HEAD + 63u) / 64u; t++) {
        let i = lane + 16u * t;
        query[t] = vec4<f32>();
        if (i < HEAD / 4u) {
            query[t] = clamp4(arena4[(params.in0 + row * params.in0_stride) / 4u + column + i], vec2<f32>(params.low0, params.high0)) * params.scale * weights[i];
        }
    }
    for (var d = 0u; d < visible; d++) {
        let k = (params.in1 + (row - d) * params.in1_stride) / 4u + column;
        let far = (params.far + d * params.far_stride) / 4u + column;
        var s = 0.0;
        for (var t = 0u; t < (HEAD + 63u) / 64u; t++) {
            let i = lane + 16u * t;
            if (i < HEAD / 4u) { s += dot(query[t], clamp4(arena4[k + i], vec2<f32>(params.low1, params.high1)) * params.key_scale + arena4[far + i]); }
        }
        partial[d * 64u + local] = s;
    }
    workgroupBarrier();
    if (lane < visible) {
        var s = 0.0;
        for (var i = 0u; i < 16u; i++) { s += partial[lane * 64u + local / 16u * 16u + i]; }
        weight[local] = params.cap * exact_tanh(s / params.cap);
    }
    workgroupBarrier();
    let mine = local / 16u * 16u;
    var high = -3.0e38;
    for (var d = 0u; d < visible; d++) { high = max(high, weight[mine + d]); }
    var y: array<vec4<f32>, VECTORS>;
    for (var t = 0u; t < VECTORS; t++) { y[t] = vec4<f32>(); }
    var total = 0.0;
    for (var d = 0u; d < visible; d++) {
        let e = exp(max(weight[mine + d] - high, -80.0));
        let v = (params.in2 + (row - d) * params.in2_stride) / 4u + column;
        total += e;
        for (var t = 0u; t < (HEAD + 63u) / 64u; t++) {
            let i = lane + 16u * t;
            if (i < HEAD / 4u) { y[t] += e * clamp4(arena4[v + i], vec2<f32>(params.low2, params.high2)); }
        }
    }
    if (!exists) { return; }
    for (var t = 0u; t < (HEAD + 63u) / 64u; t++) {
        let i = lane + 16u * t;
        if (i < HEAD / 4u) {
            arena4[(params.out0 + row * params.out0_stride) / 4u + column + i] = clamp4(y[t] / total, vec2<f32>(params.low3, params.high3));
        }
    }
}
