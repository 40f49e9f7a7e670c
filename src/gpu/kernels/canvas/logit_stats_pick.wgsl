// uses: canvas/common
// logit_stats_pick: second half of logit_stats. Per row: the most likely token, the drawn one, the entropy, the peak and
// the sum of exponentials.
// out1: [row][range][4] of logit_stats_scan; out0: [rows][5]. One workgroup per row combines the ranges and finds the
// token that the draw falls on, first among the ranges, then within one.
var<workgroup> top: array<f32, 256>;
var<workgroup> total: array<f32, 256>;
var<workgroup> weighted: array<f32, 256>;
var<workgroup> first_best: atomic<u32>; // first range with the largest
var<workgroup> chosen: u32;             // range of the drawn token
var<workgroup> before: f32;             // sum of the ranges before it

fn part(row: u32, i: u32) -> u32 { return params.out1 + (row * params.ranges + i) * 4u; }

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y;
    if (row >= live_rows()) { return; }
    var peak = LOWEST;
    for (var i = local; i < params.ranges; i += 256u) { peak = max(peak, arena[part(row, i)]); }
    top[local] = peak;
    workgroupBarrier();
    for (var half = 128u; half > 0u; half >>= 1u) {
        if (local < half) { top[local] = max(top[local], top[local + half]); }
        workgroupBarrier();
    }
    peak = top[0];
    var sum = 0.0;
    var below = 0.0;
    for (var i = local; i < params.ranges; i += 256u) {
        let p = part(row, i);
        let rescale = exp_below(arena[p], peak);
        if (rescale > 0.0) {
            sum += rescale * arena[p + 2u];
            below += rescale * (arena[p + 3u] + (arena[p] - peak) * arena[p + 2u]);
        }
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
    let all = total[0];
    let entropy = max(log(all) - weighted[0] / all, 0.0);
    let reach = draw_of(params.first_wanted + row) * all;
    let y = params.out0 + (params.first_wanted + row) * params.out0_stride;
    workgroupBarrier(); // total is reused below
    if (local == 0u) { atomicStore(&first_best, 0xffffffffu); }
    var at = 0u; // last range with a sum above 0, up to the one that reaches the draw; thread 0 only
    var gone = 0.0;
    var all_before = 0.0;
    var reached = false;
    for (var i0 = 0u; i0 < params.ranges; i0 += 256u) { // loaded by all, walked by one
        workgroupBarrier();
        var here = 0.0;
        if (i0 + local < params.ranges) {
            let p = part(row, i0 + local);
            here = exp_below(arena[p], peak) * arena[p + 2u];
            if (arena[p] == peak) { atomicMin(&first_best, i0 + local); }
        }
        total[local] = here;
        workgroupBarrier();
        if (local == 0u) {
            for (var i = 0u; i < 256u && !reached; i++) {
                if (total[i] > 0.0) {
                    at = i0 + i;
                    all_before = gone;
                    gone += total[i];
                    reached = gone >= reach;
                }
            }
        }
    }
    if (local == 0u) {
        let best = bitcast<u32>(arena[part(row, min(atomicLoad(&first_best), params.ranges - 1u)) + 1u]);
        chosen = at;
        before = all_before;
        let none = peak == LOWEST;
        arena[y] = select(f32(best), 0.0, none);
        arena[y + 2u] = select(entropy, -1.0, none);
        arena[y + 3u] = select(peak, 0.0, none);
        arena[y + 4u] = select(all, 1.0, none);
    }
    workgroupBarrier();
    let first = chosen * RANGE + local * 8u; // eight neighbors per thread
    let z0 = params.in0 + row * params.in0_stride;
    var mine = 0.0;
    for (var i = first; i < min(first + 8u, params.vocab); i++) { mine += exp_below(scaled_logit(z0 + i), peak); }
    total[local] = mine;
    workgroupBarrier();
    if (local == 0u) {
        var gone = before;
        var octet = 0u;
        var gone_before = before;
        for (var i = 0u; i < 256u; i++) {
            if (total[i] > 0.0) {
                octet = i;
                gone_before = gone;
                gone += total[i];
                if (gone >= reach) { break; }
            }
        }
        let from0 = chosen * RANGE + octet * 8u;
        var drawn = from0;
        gone = gone_before;
        for (var i = from0; i < min(from0 + 8u, params.vocab); i++) {
            let e = exp_below(scaled_logit(z0 + i), peak);
            if (e > 0.0) {
                drawn = i;
                gone += e;
                if (gone >= reach) { break; }
            }
        }
        arena[y + 1u] = f32(drawn);
    }
}
