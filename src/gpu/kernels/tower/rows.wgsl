// What stands between two products of a tower, a row at a time:
//   y = in1 + scale * norm(clamp(in0))       kept as out1
//   z = silu(norm(y))                        up to three copies, each between bounds of its own
// One workgroup per row, which its threads hold: at most 2048 values, four at a time.
override FORM: u32 = 0u;
override OUTS: u32 = 1u;
override VECTORS: u32 = 16u; // of a row
const NORM = 1u;   // the first one
const ADD = 2u;
const KEEP = 4u;
const THEN = 8u;   // the second one
const SILU = 16u;

const HALVES_AT = 5u;

@group(0) @binding(3) var<storage, read> first_weights: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> second_weights: array<vec4<f32>>;

var<workgroup> partial: array<vec4<f32>, 16>; // a value for each thread

// The same for all threads: behind a barrier of its own, since `partial` may still be read.
fn inverse_rms(local: u32, mine: f32, eps: f32) -> f32 {
    workgroupBarrier();
    partial[local / 4u][local % 4u] = mine;
    workgroupBarrier();
    var sum = vec4<f32>();
    for (var i = 0u; i < 16u; i++) { sum += partial[i]; }
    return 1.0 / sqrt((sum.x + sum.y + (sum.z + sum.w)) / f32(VECTORS * 4u) + eps);
}

fn silu(x: vec4<f32>) -> vec4<f32> {
    let e = exp(-min(abs(x), vec4<f32>(80.0)));
    return x * select(e, vec4<f32>(1.0), x >= vec4<f32>()) / (1.0 + e);
}

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y;
    if (row >= live_rows()) { return; }
    var x: array<vec4<f32>, 8>;
    let in0 = (step.in0 + row * step.in0_stride) / 4u;
    let in1 = (step.in1 + row * step.in1_stride) / 4u;
    for (var t = 0u; t < (VECTORS + 63u) / 64u; t++) {
        let i = local + 64u * t;
        x[t] = vec4<f32>();
        if (i < VECTORS) { x[t] = between(arena4[in0 + i], step.bounds01.xy); }
    }
    if ((FORM & NORM) != 0u) {
        var squares = 0.0;
        for (var t = 0u; t < (VECTORS + 63u) / 64u; t++) { squares += dot(x[t], x[t]); }
        let r = inverse_rms(local, squares, step.eps);
        for (var t = 0u; t < (VECTORS + 63u) / 64u; t++) {
            x[t] = x[t] * r * first_weights[min(local + 64u * t, VECTORS - 1u)];
        }
    }
    if ((FORM & ADD) != 0u) {
        for (var t = 0u; t < (VECTORS + 63u) / 64u; t++) {
            let i = local + 64u * t;
            if (i < VECTORS) {
                x[t] = arena4[in1 + i] + step.scale * x[t];
                if ((FORM & KEEP) != 0u) { arena4[(step.out1 + row * step.out1_stride) / 4u + i] = x[t]; }
            }
        }
    }
    if ((FORM & THEN) != 0u) {
        var squares = 0.0;
        for (var t = 0u; t < (VECTORS + 63u) / 64u; t++) { squares += dot(x[t], x[t]); }
        let r = inverse_rms(local, squares, step.eps2);
        for (var t = 0u; t < (VECTORS + 63u) / 64u; t++) {
            x[t] = x[t] * r * second_weights[min(local + 64u * t, VECTORS - 1u)];
            if ((FORM & SILU) != 0u) { x[t] = silu(x[t]); }
        }
    }
    for (var t = 0u; t < (VECTORS + 63u) / 64u; t++) {
        let i = local + 64u * t;
        if (i < VECTORS) {
            if (OUTS > 0u) { keep4(step.out0, step.out0_stride, row, i, between(x[t], step.bounds01.zw)); }
            if (OUTS > 1u) { keep4(step.part1_out, step.part1_stride, row, i, between(x[t], step.bounds23.xy)); }
            if (OUTS > 2u) { keep4(step.part2_out, step.part2_stride, row, i, between(x[t], step.bounds23.zw)); }
        }
    }
}
