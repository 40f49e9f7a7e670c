// uses: canvas/common
// logit_stats_scan: first half of logit_stats. Per range of a row of logits z (divided by the temperature): the largest
// z, its index, the sum of e = exp(z - largest), and the sum of e * (z - largest).
// in0: [rows][k]; out1: [row][range][4]. One workgroup per range; sums are trees, so that no tail is lost.
var<workgroup> high: array<f32, 256>;
var<workgroup> index_of: array<u32, 256>;
var<workgroup> total: array<f32, 256>;
var<workgroup> weighted: array<f32, 256>;

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y;
    if (row >= live_rows()) { return; }
    let z0 = params.in0 + row * params.in0_stride;
    let first = group.x * RANGE;
    var z: array<f32, 8>;
    var top = LOWEST;
    var best = 0xffffffffu;
    for (var i = 0u; i < 8u; i++) {
        let v = first + i * 256u + local;
        z[i] = LOWEST;
        if (v < params.vocab) { z[i] = scaled_logit(z0 + v); }
        if (z[i] > top) {
            top = z[i];
            best = v;
        }
    }
    high[local] = top;
    index_of[local] = best;
    workgroupBarrier();
    for (var half = 128u; half > 0u; half >>= 1u) {
        if (local < half) {
            let other = high[local + half];
            if (other > high[local] || (other == high[local] && index_of[local + half] < index_of[local])) {
                high[local] = other;
                index_of[local] = index_of[local + half];
            }
        }
        workgroupBarrier();
    }
    let peak = high[0];
    var sum = 0.0;
    var below = 0.0;
    for (var i = 0u; i < 8u; i++) {
        let e = exp_below(z[i], peak);
        sum += e;
        below += e * select(z[i] - peak, 0.0, e == 0.0);
    }
    total[local] = sum;
    weighted[local] = below;
    workgroupBarrier();
    for (var half = 128u; half > 0u; half >>= 1u) {
        if (local < half) {
            total[local] += total[local + half];
            weighted[local] += weighted[local + half];
        }
        workgroupBarrier();
    }
    if (local == 0u) {
        let at = params.out1 + (row * params.ranges + group.x) * 4u;
        arena[at] = peak;
        arena[at + 1u] = bitcast<f32>(index_of[0]);
        arena[at + 2u] = total[0];
        arena[at + 3u] = weighted[0];
    }
}
