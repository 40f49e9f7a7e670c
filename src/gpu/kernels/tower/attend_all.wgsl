// attend_all: every row sees all rows. A workgroup takes 8 rows of one head and walks over the keys 32 at a time:
// 32 threads to a row, each with one key for the score and with every 32nd column of the result.
const ROWS = 8u;
const KEYS = 32u;
const LOWEST = -3.0e38;
override HEAD: u32 = 64u; // at most 96

var<workgroup> query: array<f32, ROWS * HEAD>;
var<workgroup> tile: array<f32, KEYS * (HEAD + 1u)>; // keys, then values; a column of padding keeps the banks apart
var<workgroup> share: array<f32, 256>;               // [row][key]

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let n = live_rows();
    let row0 = group.y * ROWS;
    if (row0 >= n) { return; }
    let head = group.x * HEAD;
    for (var i = local; i < ROWS * HEAD; i += 256u) {
        query[i] = arena[step.in0 + min(row0 + i / HEAD, n - 1u) * step.in0_stride + head + i % HEAD];
    }
    let r = local / 32u;
    let lane = local % 32u;
    var best = LOWEST;
    var sum = 0.0;
    var out = vec3<f32>(); // columns lane, lane + 32, lane + 64
    for (var j = 0u; j < n; j += KEYS) {
        workgroupBarrier();
        for (var i = local; i < KEYS * HEAD; i += 256u) {
            tile[i / HEAD * (HEAD + 1u) + i % HEAD] = arena[step.in1 + min(j + i / HEAD, n - 1u) * step.in1_stride + head + i % HEAD];
        }
        workgroupBarrier();
        var s = 0.0;
        for (var i = 0u; i < HEAD; i++) { s += query[r * HEAD + i] * tile[lane * (HEAD + 1u) + i]; }
        share[local] = select(LOWEST, s, j + lane < n);
        workgroupBarrier();
        for (var i = local; i < KEYS * HEAD; i += 256u) {
            tile[i / HEAD * (HEAD + 1u) + i % HEAD] = arena[step.in2 + min(j + i / HEAD, n - 1u) * step.in2_stride + head + i % HEAD];
        }
        var high = best;
        for (var t = 0u; t < KEYS; t++) { high = max(high, share[r * KEYS + t]); }
        workgroupBarrier();
        share[local] = select(exp(max(share[local] - high, -80.0)), 0.0, j + lane >= n);
        workgroupBarrier();
        let shrink = select(exp(max(best - high, -80.0)), 0.0, best == LOWEST);
        sum *= shrink;
        out *= shrink;
        best = high;
        for (var t = 0u; t < KEYS; t++) {
            let p = share[r * KEYS + t];
            let at = t * (HEAD + 1u) + lane;
            sum += p;
            if (lane < HEAD) { out.x += p * tile[at]; }
            if (lane + 32u < HEAD) { out.y += p * tile[at + 32u]; }
            if (lane + 64u < HEAD) { out.z += p * tile[at + 64u]; }
        }
    }
    if (row0 + r >= n) { return; }
    let y = step.out0 + (row0 + r) * step.out0_stride + head + lane;
    if (lane < HEAD) { arena[y] = out.x / sum; }
    if (lane + 32u < HEAD) { arena[y + 32u] = out.y / sum; }
    if (lane + 64u < HEAD) { arena[y + 64u] = out.z / sum; }
}
