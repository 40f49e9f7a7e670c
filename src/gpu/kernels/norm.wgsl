// rms_norm, alone or with what follows it: one workgroup per group of `width` values.
// EACH is known when compiling, so that all loads of a thread are under way together.
override THEN: u32 = 0u;
override EACH: u32 = 1u; // values of a thread: width / 256, rounded up
override SUMS: u32 = 0u; // splits that in0 is the sum of, 0: none
override HELD: u32 = 1u; // then width: sums are made once
const ADD = 1u;       // in1 + norm
const ADD_SCALE = 2u; // (in1 + norm) * scale_weight[0]
const ROPE = 3u;      // the group is a head, in1 its cosines and sines
const MUL = 4u;       // norm * scale; the vector is `weights`

@group(0) @binding(3) var<storage, read> weights: array<f32>;
@group(0) @binding(4) var<storage, read> scale_weight: array<f32>;

var<workgroup> partial: array<f32, 256>;
var<workgroup> held: array<f32, HELD>;

fn weight(i: u32) -> f32 {
    return select(1.0, weights[min(i, arrayLength(&weights) - 1u)], step.has_weight == 1u);
}

fn own(x: u32, i: u32) -> f32 {
    if (SUMS > 0u) { return held[i]; }
    return arena[x + i];
}

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y;
    if (row >= live_rows()) { return; }
    let x = step.in0 + row * step.in0_stride + group.x * step.width;
    let y = step.out0 + row * step.out0_stride + group.x * step.width;
    let other = step.in1 + row * step.in1_stride;
    var sum = 0.0;
    for (var n = 0u; n < EACH; n++) {
        let i = local + n * 256u;
        let value = select(0.0, added(x + min(i, step.width - 1u), step.in0_stride * step.sum_rows, SUMS), i < step.width);
        if (SUMS > 0u && i < step.width) { held[i] = value; }
        sum += value * value;
    }
    partial[local] = sum;
    workgroupBarrier();
    for (var half = 128u; half > 0u; half >>= 1u) {
        if (local < half) { partial[local] += partial[local + half]; }
        workgroupBarrier();
    }
    let r = 1.0 / sqrt(partial[0] / f32(step.width) + step.eps);
    if (THEN == ROPE) {
        let pairs = step.width / 2u;
        for (var i = local; i < pairs; i += 256u) {
            let a = own(x, i) * r * weight(i);
            let b = own(x, pairs + i) * r * weight(pairs + i);
            let c = arena[other + i];
            let s = arena[other + pairs + i];
            arena[y + i] = a * c - b * s;
            arena[y + pairs + i] = a * s + b * c;
        }
    } else {
        for (var n = 0u; n < EACH; n++) {
            let i = local + n * 256u;
            if (i >= step.width) { break; }
            var value = own(x, i) * r * weight(i);
            if (THEN == ADD || THEN == ADD_SCALE) { value = arena[other + i] + value; }
            if (THEN == ADD_SCALE) { value *= scale_weight[0]; }
            if (THEN == MUL) { value *= step.scale; }
            arena[y + i] = value;
        }
    }
}
