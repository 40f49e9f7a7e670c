// uses: params.norm common/pass common/arena common/split_input
// norm: rms_norm, alone or with the step that follows it: n = x / sqrt(mean(x^2) + eps) * weight.
// AFTER: in1 + n; (in1 + n) * scale_weight; rope(n); n * scale.
// in0: [rows][groups][width]. One workgroup per group of `width` values. PER_THREAD is an override, so that all loads
// of a thread are in flight together.
override AFTER: u32 = 0u;
override PER_THREAD: u32 = 1u; // values per thread: width / THREADS, rounded up
override SUMS: u32 = 0u;       // split-K partial sums of in0; 0: not split
override CACHED: u32 = 1u;     // width if SUMS > 0: sums are computed once
override THREADS: u32 = 256u;  // a power of two
const ADD = 1u;                // in1 + norm
const ADD_SCALE = 2u;          // (in1 + norm) * scale_weight[0]
const ROPE = 3u;               // the group is a head; in1: cosines, then sines
const MUL = 4u;                // norm * scale; the vector is `weights`

@group(0) @binding(3) var<storage, read> weights: array<f32>;
@group(0) @binding(4) var<storage, read> scale_weight: array<f32>;

var<workgroup> partial: array<f32, THREADS>;
var<workgroup> cached: array<f32, CACHED>;

fn weight(i: u32) -> f32 {
    return select(1.0, weights[min(i, arrayLength(&weights) - 1u)], params.has_weight == 1u);
}

fn input_value(x: u32, i: u32) -> f32 {
    if (SUMS > 0u) { return cached[i]; }
    return arena[x + i];
}

@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y;
    if (row >= live_rows()) { return; }
    let x = params.in0 + row * params.in0_stride + group.x * params.width;
    let y = params.out0 + row * params.out0_stride + group.x * params.width;
    let other = params.in1 + row * params.in1_stride;
    var sum = 0.0;
    for (var n = 0u; n < PER_THREAD; n++) {
        let i = local + n * THREADS;
        let value = select(0.0, sum_splits(x + min(i, params.width - 1u), params.in0_stride * params.split_rows, SUMS), i < params.width);
        if (SUMS > 0u && i < params.width) { cached[i] = value; }
        sum += value * value;
    }
    partial[local] = sum;
    workgroupBarrier();
    for (var half = THREADS / 2u; half > 0u; half >>= 1u) {
        if (local < half) { partial[local] += partial[local + half]; }
        workgroupBarrier();
    }
    let r = 1.0 / sqrt(partial[0] / f32(params.width) + params.eps);
    if (AFTER == ROPE) {
        let pairs = params.width / 2u;
        for (var i = local; i < pairs; i += THREADS) {
            let a = input_value(x, i) * r * weight(i);
            let b = input_value(x, pairs + i) * r * weight(pairs + i);
            let c = arena[other + i];
            let s = arena[other + pairs + i];
            arena[y + i] = a * c - b * s;
            arena[y + pairs + i] = a * s + b * c;
        }
    } else {
        for (var n = 0u; n < PER_THREAD; n++) {
            let i = local + n * THREADS;
            if (i >= params.width) { break; }
            var value = input_value(x, i) * r * weight(i);
            if (AFTER == ADD || AFTER == ADD_SCALE) { value = arena[other + i] + value; }
            if (AFTER == ADD_SCALE) { value *= scale_weight[0]; }
            if (AFTER == MUL) { value *= params.scale; }
            arena[y + i] = value;
        }
    }
}
