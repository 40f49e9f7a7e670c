// uses: params.attention common/pass attention/rotate_query common/arena
// combine: partial results of attention -> y. With m = max over the parts: y = sum exp(max_i - m) columns_i / sum
// exp(max_i - m) sum_i.
// out1: [row][head][part] of (max, sum, two unused, width columns); y: [rows][heads][width] (out0).
//
// One workgroup per row and head. Parts are added in order, BATCH at a time, so that their loads are in flight
// together.
override BATCH: u32 = 16u; // the splits of one binding
override ROTATED: u32 = 0u; // 1: the columns are rotated, and y is not; heads of up to 1024 values
override THREADS: u32 = 256u; // 256 with ROTATED

var<workgroup> query: array<f32, 1024>;

@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let head = group.x;
    let row = group.y;
    if (row >= live_rows()) { return; }
    let d = params.width;
    let first = params.out1 + (row * params.heads + head) * params.parts * (d + 4u);
    var best = -3.0e38;
    for (var s = 0u; s < params.parts; s += BATCH) {
        for (var t = 0u; t < BATCH; t++) { best = max(best, arena[first + min(s + t, params.parts - 1u) * (d + 4u)]); }
    }
    let y = params.out0 + row * params.out0_stride + head * d;
    for (var i = local; i < d; i += THREADS) {
        var total = 0.0;
        var sum = 0.0;
        for (var s = 0u; s < params.parts; s += BATCH) {
            for (var t = 0u; t < BATCH; t++) {
                let part = first + min(s + t, params.parts - 1u) * (d + 4u);
                let weight = select(0.0, exp(max(arena[part] - best, -80.0)), s + t < params.parts);
                total += weight * arena[part + 1u];
                sum += weight * arena[part + 4u + i];
            }
        }
        if (ROTATED == 1u) {
            query[i] = sum / total;
        } else {
            arena[y + i] = sum / total;
        }
    }
    if (ROTATED == 0u) { return; }
    workgroupBarrier();
    rotate_query(local, d);
    for (var i = local; i < d; i += THREADS) { arena[y + i] = query[i]; }
}
