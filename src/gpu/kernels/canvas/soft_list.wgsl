// soft_embed: the tokens of a stretch that count, in order, into the list.
var<workgroup> place: array<u32, 256>;
var<workgroup> in_stretch: u32;

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y;
    if (row >= live_rows() || !group_listed(local)) { return; }
    let cut = u32(arena[row_note(row) + 1u]);
    let note = stretch_note(row, group.x);
    if (local == 0u) { in_stretch = u32(arena[note + 1u]); }
    if (workgroupUniformLoad(&in_stretch) == 0u) { return; }
    let first = group.x * STRETCH + local * 8u; // eight neighbours each
    let z0 = step.in0 + row * step.in0_stride;
    var mine = 0u;
    for (var v = first; v < min(first + 8u, step.k); v++) {
        let e = arena[z0 + v];
        mine += select(0u, 1u, e > 0.0 && bin_of(e) < cut);
    }
    place[local] = mine;
    workgroupBarrier();
    for (var back = 1u; back < 256u; back <<= 1u) {
        var other = 0u;
        if (local >= back) { other = place[local - back]; }
        workgroupBarrier();
        place[local] += other;
        workgroupBarrier();
    }
    var at = step.in2_stride + kept_before(row) + u32(arena[note]) + place[local] - mine;
    for (var v = first; v < min(first + 8u, step.k); v++) {
        let e = arena[z0 + v];
        if (e > 0.0 && bin_of(e) < cut) {
            arena[at] = f32(v);
            at++;
        }
    }
}
