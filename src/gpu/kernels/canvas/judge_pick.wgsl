// judge, second half: one workgroup per row puts the stretches together and looks for the token that the draw falls on,
// first among stretches, then inside one.
var<workgroup> most: array<f32, 256>;
var<workgroup> total: array<f32, 256>;
var<workgroup> weighted: array<f32, 256>;
var<workgroup> first_best: atomic<u32>; // stretch that has the greatest
var<workgroup> chosen: u32;    // stretch
var<workgroup> before: f32;    // sum of all before it

fn part(row: u32, i: u32) -> u32 { return step.out1 + (row * step.parts + i) * 4u; }

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y;
    if (row >= live_rows()) { return; }
    var peak = LOWEST;
    for (var i = local; i < step.parts; i += 256u) { peak = max(peak, arena[part(row, i)]); }
    most[local] = peak;
    workgroupBarrier();
    for (var half = 128u; half > 0u; half >>= 1u) {
        if (local < half) { most[local] = max(most[local], most[local + half]); }
        workgroupBarrier();
    }
    peak = most[0];
    var sum = 0.0;
    var below = 0.0;
    for (var i = local; i < step.parts; i += 256u) {
        let p = part(row, i);
        let shrink = share(arena[p], peak);
        if (shrink > 0.0) {
            sum += shrink * arena[p + 2u];
            below += shrink * (arena[p + 3u] + (arena[p] - peak) * arena[p + 2u]);
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
    let reach = draw_of(step.row0 + row) * all;
    let y = step.out0 + (step.row0 + row) * step.out0_stride;
    workgroupBarrier(); // total is used twice more below
    if (local == 0u) { atomicStore(&first_best, 0xffffffffu); }
    var at = 0u; // the last stretch with anything in it, up to the one that reaches; these of thread 0 count
    var gone = 0.0;
    var all_before = 0.0;
    var reached = false;
    for (var i0 = 0u; i0 < step.parts; i0 += 256u) { // fetched by all, walked over by one
        workgroupBarrier();
        var here = 0.0;
        if (i0 + local < step.parts) {
            let p = part(row, i0 + local);
            here = share(arena[p], peak) * arena[p + 2u];
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
        let best = bitcast<u32>(arena[part(row, min(atomicLoad(&first_best), step.parts - 1u)) + 1u]);
        chosen = at;
        before = all_before;
        let none = peak == LOWEST;
        arena[y] = select(f32(best), 0.0, none);
        arena[y + 2u] = select(entropy, -1.0, none);
        arena[y + 3u] = select(peak, 0.0, none);
        arena[y + 4u] = select(all, 1.0, none);
    }
    workgroupBarrier();
    let first = chosen * STRETCH + local * 8u; // eight neighbours each
    let z0 = step.in0 + row * step.in0_stride;
    var mine = 0.0;
    for (var i = first; i < min(first + 8u, step.k); i++) { mine += share(cooled(z0 + i), peak); }
    total[local] = mine;
    workgroupBarrier();
    if (local == 0u) {
        var gone = before;
        var eighth = 0u;
        var gone_before = before;
        for (var i = 0u; i < 256u; i++) {
            if (total[i] > 0.0) {
                eighth = i;
                gone_before = gone;
                gone += total[i];
                if (gone >= reach) { break; }
            }
        }
        let from0 = chosen * STRETCH + eighth * 8u;
        var drawn = from0;
        gone = gone_before;
        for (var i = from0; i < min(from0 + 8u, step.k); i++) {
            let e = share(cooled(z0 + i), peak);
            if (e > 0.0) {
                drawn = i;
                gone += e;
                if (gone >= reach) { break; }
            }
        }
        arena[y + 1u] = f32(drawn);
    }
}
