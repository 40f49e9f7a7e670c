// uses: params.tower common/pass common/arena4 tower/clamp <output>
// tower_rows: everything between two products of an encoder, fused:
//   y = in1 + scale * norm(clamp(in0))       stored at out1
//   z = silu(norm(y))                        up to three copies, each with a clamp of its own
// in0, in1: [rows][4 VECTORS], at most 2048 values. <output>: f32 in the arena, or f16 slabs for kernels on subgroup
// matrices.
// One workgroup per row, whose threads keep it in registers.
override FLAGS: u32 = 0u;
override OUTS: u32 = 1u;
override VECTORS: u32 = 16u; // vectors of a row
const NORM = 1u;             // the first norm
const ADD = 2u;
const KEEP = 4u;
const NORM2 = 8u; // the second norm
const SILU = 16u;

const F16_BINDING = 5u;

@group(0) @binding(3) var<storage, read> first_weights: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> second_weights: array<vec4<f32>>;

var<workgroup> partial: array<vec4<f32>, 16>; // one value per thread

// Uniform. Begins with a barrier, since `partial` may still be read.
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
    let in0 = (params.in0 + row * params.in0_stride) / 4u;
    let in1 = (params.in1 + row * params.in1_stride) / 4u;
    for (var t = 0u; t < (VECTORS + 63u) / 64u; t++) {
        let i = local + 64u * t;
        x[t] = vec4<f32>();
        if (i < VECTORS) { x[t] = clamp4(arena4[in0 + i], vec2<f32>(params.low0, params.high0)); }
    }
    if ((FLAGS & NORM) != 0u) {
        var squares = 0.0;
        for (var t = 0u; t < (VECTORS + 63u) / 64u; t++) { squares += dot(x[t], x[t]); }
        let r = inverse_rms(local, squares, params.eps);
        for (var t = 0u; t < (VECTORS + 63u) / 64u; t++) {
            x[t] = x[t] * r * first_weights[min(local + 64u * t, VECTORS - 1u)];
        }
    }
    if ((FLAGS & ADD) != 0u) {
        for (var t = 0u; t < (VECTORS + 63u) / 64u; t++) {
            let i = local + 64u * t;
            if (i < VECTORS) {
                x[t] = arena4[in1 + i] + params.scale * x[t];
                if ((FLAGS & KEEP) != 0u) { arena4[(params.out1 + row * params.out1_stride) / 4u + i] = x[t]; }
            }
        }
    }
    if ((FLAGS & NORM2) != 0u) {
        var squares = 0.0;
        for (var t = 0u; t < (VECTORS + 63u) / 64u; t++) { squares += dot(x[t], x[t]); }
        let r = inverse_rms(local, squares, params.out_eps);
        for (var t = 0u; t < (VECTORS + 63u) / 64u; t++) {
            x[t] = x[t] * r * second_weights[min(local + 64u * t, VECTORS - 1u)];
            if ((FLAGS & SILU) != 0u) { x[t] = silu(x[t]); }
        }
    }
    for (var t = 0u; t < (VECTORS + 63u) / 64u; t++) {
        let i = local + 64u * t;
        if (i < VECTORS) {
            if (OUTS > 0u) { store4(params.out0, params.out0_stride, row, i, clamp4(x[t], vec2<f32>(params.low1, params.high1))); }
            if (OUTS > 1u) { store4(params.copy1_out, params.copy1_stride, row, i, clamp4(x[t], vec2<f32>(params.low2, params.high2))); }
            if (OUTS > 2u) { store4(params.copy2_out, params.copy2_stride, row, i, clamp4(x[t], vec2<f32>(params.low3, params.high3))); }
        }
    }
}
