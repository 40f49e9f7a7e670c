// uses: canvas/soft
// soft_offsets: where each row's tokens begin in the list, and how many there are in all. One workgroup, an inclusive
// sum over the rows.
const ROWS = 512u; // maximum

var<workgroup> sum: array<u32, ROWS>; // inclusive sums

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) local: u32) {
    let n = live_rows();
    for (var r = local; r < ROWS; r += 256u) {
        sum[r] = 0u;
        if (r < n) { sum[r] = u32(arena[row_note(r)]); }
    }
    workgroupBarrier();
    for (var back = 1u; back < ROWS; back <<= 1u) {
        var a = 0u;
        if (local >= back) { a = sum[local - back]; }
        let b = sum[local + 256u - back];
        workgroupBarrier();
        sum[local] += a;
        sum[local + 256u] += b;
        workgroupBarrier();
    }
    for (var r = local; r < n; r += 256u) {
        arena[row_note(r) + 2u] = f32(sum[r]) - arena[row_note(r)];
    }
    if (local == 0u) { arena[params.counts] = f32(sum[ROWS - 1u]); }
}
