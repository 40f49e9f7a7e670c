// uses: canvas/soft
// soft_cut: the smallest size of e that is listed, per row, and where each range's tokens begin in the list.
// One workgroup per row.
var<workgroup> pair: array<vec2<f32>, 256>;
var<workgroup> tally: array<f32, 256>; // per range

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y;
    if (row >= live_rows()) { return; }
    let n = ranges();
    // three threads per pair of bins
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
    // all threads compute the same: drop bins from the smallest up
    let budget = params.omitted * arena[params.in1 + (params.first_wanted + row) * params.in1_stride + 4u];
    var cut = BINS;
    var dropped = 0.0;
    while (cut > 1u) {
        dropped += pair[(cut - 1u) / 2u][(cut - 1u) % 2u];
        if (dropped > budget) { break; }
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
        for (var back = 1u; back < 256u; back <<= 1u) { // inclusive sums
            var other = 0.0;
            if (local >= back) { other = tally[local - back]; }
            workgroupBarrier();
            tally[local] += other;
            workgroupBarrier();
        }
        if (first + local < n) {
            let at = range_note(row, first + local);
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
