// soft_embed: the size from which on a row's tokens count, and where each stretch's share of them will stand.
// One workgroup per row.
var<workgroup> tally: array<f32, 256>; // by bin, then by stretch

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y;
    if (row >= live_rows()) { return; }
    let n = stretches();
    // three threads to a bin
    var sum = 0.0;
    if (local < 3u * BINS) {
        for (var i = local / BINS; i < n; i += 3u) { sum += arena[counts_of(row, i) + local % BINS]; }
    }
    tally[local] = sum;
    workgroupBarrier();
    // every thread for itself, the same for all: what is smallest goes first
    let may_go = step.eps * arena[step.in1 + (step.row0 + row) * step.in1_stride + 4u];
    var cut = BINS;
    var gone = 0.0;
    while (cut > 1u) {
        let b = cut - 1u;
        gone += (tally[b] + tally[b + BINS] + tally[b + 2u * BINS]) * bin_top(b);
        if (gone > may_go) { break; }
        cut = b;
    }
    workgroupBarrier();
    var before = 0.0;
    for (var first = 0u; first < n; first += 256u) {
        var here = 0.0;
        if (first + local < n) {
            for (var b = 0u; b < cut; b++) { here += arena[counts_of(row, first + local) + b]; }
        }
        tally[local] = here;
        workgroupBarrier();
        for (var back = 1u; back < 256u; back <<= 1u) { // sums up to and including each
            var other = 0.0;
            if (local >= back) { other = tally[local - back]; }
            workgroupBarrier();
            tally[local] += other;
            workgroupBarrier();
        }
        if (first + local < n) {
            let at = stretch_note(row, first + local);
            arena[at] = before + tally[local] - here;
            arena[at + 1u] = here;
        }
        before += tally[255];
        workgroupBarrier();
    }
    if (local == 0u) {
        arena[row_note(row)] = before;
        arena[row_note(row) + 1u] = f32(cut);
    }
}
