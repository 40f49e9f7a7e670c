// soft_embed: the tokens of a stretch that count, in order, into the list. Neighbouring threads read neighbouring values; a
// thread then has eight neighbours, in workgroup memory nine apart so that no two meet in a bank.
var<workgroup> near: array<f32, STRETCH / 8u * 9u>;
var<workgroup> place: array<u32, 256>;
var<workgroup> in_stretch: u32;

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y;
    if (row >= live_rows() || !group_listed(local)) { return; }
    let note = stretch_note(row, group.x);
    if (local == 0u) { in_stretch = u32(arena[note + 1u]); }
    if (workgroupUniformLoad(&in_stretch) == 0u) { return; }
    let cut = u32(arena[row_note(row) + 1u]);
    let first = group.x * STRETCH;
    let e0 = step.in0 + row * step.in0_stride + first;
    for (var i = local; i < STRETCH; i += 256u) {
        var e = 0.0;
        if (first + i < step.k) { e = arena[e0 + i]; }
        near[i + (i >> 3u)] = e;
    }
    workgroupBarrier();
    var counts = 0u; // bit by bit
    for (var i = 0u; i < 8u; i++) {
        let e = near[9u * local + i];
        counts |= select(0u, 1u << i, e > 0.0 && bin_of(e) < cut);
    }
    place[local] = countOneBits(counts);
    workgroupBarrier();
    for (var back = 1u; back < 256u; back <<= 1u) {
        var other = 0u;
        if (local >= back) { other = place[local - back]; }
        workgroupBarrier();
        place[local] += other;
        workgroupBarrier();
    }
    var at = step.in2_stride + kept_before(row) + u32(arena[note]) + place[local] - countOneBits(counts);
    for (var i = 0u; i < 8u; i++) {
        if ((counts & (1u << i)) != 0u) {
            arena[at] = f32(first + 8u * local + i);
            at++;
        }
    }
}
