// uses: canvas/soft
// soft_list: the listed tokens of a range, in order. One workgroup per range. Neighbouring threads read neighboring
// values; a thread then has eight neighbors, nine apart in workgroup memory so that no two threads share a bank.
var<workgroup> exponentials: array<f32, RANGE / 8u * 9u>;
var<workgroup> end_of: array<u32, 256>;
var<workgroup> in_range: u32;

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y;
    if (row >= live_rows() || !group_all_fit(local)) { return; }
    let note = range_note(row, group.x);
    if (local == 0u) { in_range = u32(arena[note + 1u]); }
    if (workgroupUniformLoad(&in_range) == 0u) { return; }
    let cut = u32(arena[row_note(row) + 1u]);
    let first = group.x * RANGE;
    let e0 = params.in0 + row * params.in0_stride + first;
    for (var i = local; i < RANGE; i += 256u) {
        var e = 0.0;
        if (first + i < params.vocab) { e = arena[e0 + i]; }
        exponentials[i + (i >> 3u)] = e;
    }
    workgroupBarrier();
    var is_listed = 0u; // bit mask
    for (var i = 0u; i < 8u; i++) {
        let e = exponentials[9u * local + i];
        is_listed |= select(0u, 1u << i, e > 0.0 && bin_of(e) < cut);
    }
    end_of[local] = countOneBits(is_listed);
    workgroupBarrier();
    for (var back = 1u; back < 256u; back <<= 1u) {
        var other = 0u;
        if (local >= back) { other = end_of[local - back]; }
        workgroupBarrier();
        end_of[local] += other;
        workgroupBarrier();
    }
    var at = params.list + listed_before(row) + u32(arena[note]) + end_of[local] - countOneBits(is_listed);
    for (var i = 0u; i < 8u; i++) {
        if ((is_listed & (1u << i)) != 0u) {
            arena[at] = f32(first + 8u * local + i);
            at++;
        }
    }
}
