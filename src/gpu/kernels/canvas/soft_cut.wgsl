// soft_embed: the size from which on a row's tokens count, and where each stretch's share of them will stand.
// One workgroup per row.
var<workgroup> pair: array<vec2<f32>, 256>;
var<workgroup> tally: array<f32, 256>; // by stretch

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y;
    if (row >= live_rows()) { return; }
    let n = stretches();
    // three threads to two bins
    var sum = vec2<f32>();
    if (local < 3u * PAIRS) {
        for (var i = local / PAIRS; i < n; i += 3u) { sum += two_counts(counts_of(row, i) + local % PAIRS); }
    }
    pair[local] = sum;
    workgroupBarrier();
    if (local < PAIRS) {
        let b = 2u * local;
        pair[local] = (sum + pair[local + PAIRS] + pair[local + 2u * PAIRS]) * vec2<f32>(bin_top(b), bin_top(b + 1u));
    }
    workgroupBarrier();
    // every thread for itself, the same for all: what is smallest goes first
    let may_go = step.eps * arena[step.in1 + (step.row0 + row) * step.in1_stride + 4u];
    var cut = BINS;
    var gone = 0.0;
    while (cut > 1u) {
        gone += pair[(cut - 1u) / 2u][(cut - 1u) % 2u];
        if (gone > may_go) { break; }
        cut--;
    }
    var before = 0.0;
    for (var first = 0u; first < n; first += 256u) {
        var here = 0.0;
        if (first + local < n) {
            for (var b = 0u; b < cut; b += 2u) {
                let two = two_counts(counts_of(row, first + local) + b / 2u);
                here += two.x + select(0.0, two.y, b + 1u < cut);
            }
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
