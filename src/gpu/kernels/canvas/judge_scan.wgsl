// judge, first half: a workgroup looks at a stretch of a row of logits and leaves the greatest, where it is, the sum of
// exponentials below it, and that sum weighted by how far below. Sums go by halves, so that no tail is lost.
var<workgroup> high: array<f32, 256>;
var<workgroup> place: array<u32, 256>;
var<workgroup> total: array<f32, 256>;
var<workgroup> weighted: array<f32, 256>;

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y;
    if (row >= live_rows()) { return; }
    let z0 = step.in0 + row * step.in0_stride;
    let first = group.x * STRETCH;
    var z: array<f32, 8>;
    var most = LOWEST;
    var best = 0xffffffffu;
    for (var i = 0u; i < 8u; i++) {
        let v = first + i * 256u + local;
        z[i] = LOWEST;
        if (v < step.k) { z[i] = cooled(z0 + v); }
        if (z[i] > most) {
            most = z[i];
            best = v;
        }
    }
    high[local] = most;
    place[local] = best;
    workgroupBarrier();
    for (var half = 128u; half > 0u; half >>= 1u) {
        if (local < half) {
            let other = high[local + half];
            if (other > high[local] || (other == high[local] && place[local + half] < place[local])) {
                high[local] = other;
                place[local] = place[local + half];
            }
        }
        workgroupBarrier();
    }
    let peak = high[0];
    var sum = 0.0;
    var below = 0.0;
    for (var i = 0u; i < 8u; i++) {
        let e = share(z[i], peak);
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
        let at = step.out1 + (row * step.parts + group.x) * 4u;
        arena[at] = peak;
        arena[at + 1u] = bitcast<f32>(place[0]);
        arena[at + 2u] = total[0];
        arena[at + 3u] = weighted[0];
    }
}
