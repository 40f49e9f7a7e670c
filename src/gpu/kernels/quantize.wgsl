// Rows of activations in 8 bits, for linear_tile8.wgsl: per 32 values a scale d = largest / 127, rounded
// integers, and d times their sum, all as the CPU makes them. A row of in0 may be `width` inputs of k values one
// behind the other (slots of experts); each is padded to steps of 64 values and becomes a row of its own:
//   quants at vector out0: [row][step][4] of 16 integers;  at vector out1: [row][step] of (d, sum, d, sum).
// A thread takes four values, eight threads make a group of 32. GATE: the rows are GEGLU's, made here.
override GATE: u32 = 0u;
override SUMS0: u32 = 0u; // splits that gates and ups are the sums of, 0: none
override SUMS1: u32 = 0u;
const TWO = 1u; // gates at in0, ups at in1
const ONE = 2u; // k gates, then k ups, input by input, at in0

@group(0) @binding(3) var<storage, read_write> side: array<u32>;

var<workgroup> largest: array<u32, 256>; // as bits: there NaN is above infinity and not lost
var<workgroup> total: array<i32, 256>;

fn rounded(x: f32) -> i32 {
    return i32(x + select(0.49999997, -0.49999997, x < 0.0)); // ties away from zero
}

fn four_of(at: u32, between: u32, n: u32) -> vec4<f32> {
    return vec4<f32>(added(at, between, n), added(at + 1u, between, n), added(at + 2u, between, n), added(at + 3u, between, n));
}

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y;
    if (row >= live_rows()) { return; }
    let steps = (step.k + 63u) / 64u;
    let i = group.x * 256u + local;
    let input = i / (steps * 16u);
    let four = i % (steps * 16u);
    let here = input < step.width;
    var x = vec4<f32>();
    if (here && four * 4u < step.k) {
        let at = step.in0 + row * step.in0_stride + select(1u, 2u, GATE == ONE) * input * step.k + four * 4u;
        x = four_of(at, step.in0_stride * step.sum_rows, SUMS0);
        if (GATE != 0u) {
            let up = select(step.in1 + row * step.in1_stride + input * step.k + four * 4u, at + step.k, GATE == ONE);
            x = vec4<f32>(gelu(x.x), gelu(x.y), gelu(x.z), gelu(x.w)) * four_of(up, step.in1_stride * step.sum_rows, SUMS1);
        }
    }
    let bits = bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu);
    largest[local] = max(max(bits.x, bits.y), max(bits.z, bits.w));
    workgroupBarrier();
    let first = local & ~7u;
    var most = 0u;
    for (var t = 0u; t < 8u; t++) { most = max(most, largest[first + t]); }
    let finite = most < 0x7f800000u;
    let usable = finite && most >= 0x0d800000u; // 2^-100: below, 127 / largest would overflow
    var q = vec4<i32>();
    if (usable) {
        let scaled = x * (127.0 / bitcast<f32>(most));
        q = vec4<i32>(rounded(scaled.x), rounded(scaled.y), rounded(scaled.z), rounded(scaled.w));
        q = clamp(q, vec4<i32>(-127), vec4<i32>(127));
    }
    total[local] = q.x + q.y + q.z + q.w;
    workgroupBarrier();
    if (!here) { return; }
    let to = row * step.width + input;
    let bytes = bitcast<vec4<u32>>(q) & vec4<u32>(255u);
    side[step.out0 * 4u + to * steps * 16u + four] = bytes.x | (bytes.y << 8u) | (bytes.z << 16u) | (bytes.w << 24u);
    if ((local & 7u) == 0u) {
        var sum = 0;
        for (var t = 0u; t < 8u; t++) { sum += total[first + t]; }
        let d = select(0.0, bitcast<f32>(most) / 127.0, usable);
        let at = step.out1 * 4u + to * steps * 4u + four / 8u * 2u;
        side[at] = select(0x7fc00000u, bitcast<u32>(d), finite);
        side[at + 1u] = select(0x7fc00000u, bitcast<u32>(d * f32(sum)), finite);
    }
}
