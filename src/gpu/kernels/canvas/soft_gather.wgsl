// soft_embed, listed tokens: a workgroup adds up a share of one row's list, as far as the binding holds its tokens. Four
// tokens' weights are fetched at once, so that a thread does not wait for each.
override THREADS: u32 = 64u;
const STAGE = 128u; // entries in workgroup memory at once, a multiple of four

var<workgroup> span: vec3<u32>;                  // 1 if there is such a share; first entry, end
var<workgroup> entries: array<vec2<u32>, STAGE>; // byte of the table, weight

// First entry of a list whose token is not before this one.
fn first_from(list: u32, begin: u32, end: u32, token: u32) -> u32 {
    var low = begin;
    var high = end;
    while (low < high) {
        let i = (low + high) / 2u;
        if (u32(arena[list + i]) < token) { low = i + 1u; } else { high = i; }
    }
    return low;
}

fn put(y: u32, column: u32, v: vec4<f32>) {
    for (var i = 0u; i < 4u; i++) {
        if (column + i < step.cols) { arena[y + column + i] = v[i]; }
    }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y;
    if (row >= live_rows() || !group_listed(local)) { return; }
    let list = step.in2_stride + kept_before(row);
    if (local == 0u) {
        let kept = kept_of(row);
        var begin = min(group.z * share_entries(kept), kept);
        var end = min(begin + share_entries(kept), kept);
        let there = select(0u, 1u, begin < end);
        if (step.row_count < step.k) { // of several bindings
            begin = first_from(list, begin, end, step.first_row);
            end = first_from(list, begin, end, step.first_row + step.row_count);
        }
        span = vec3<u32>(there, begin, end);
    }
    let share = workgroupUniformLoad(&span);
    if (share.x == 0u) { return; }
    let e0 = step.in0 + row * step.in0_stride;
    let mine = group.x * THREADS + local;
    let t = min(mine, 2u * ((step.cols + 63u) / 64u) - 1u);
    for (var first = share.y; first < share.z; first += STAGE) {
        workgroupBarrier();
        for (var i = local; i < STAGE; i += THREADS) { // behind the end: the last one, times nothing
            let token = u32(arena[list + min(first + i, share.z - 1u)]);
            let e = select(0.0, arena[e0 + token], first + i < share.z);
            entries[i] = vec2<u32>((token - step.first_row) * step.row_bytes, bitcast<u32>(e));
        }
        workgroupBarrier();
        for (var i = 0u; i < min(STAGE, share.z - first); i += 4u) {
            let w0 = entries[i];
            let w1 = entries[i + 1u];
            let w2 = entries[i + 2u];
            let w3 = entries[i + 3u];
            let p0 = fetch_part(w0.x, t);
            let p1 = fetch_part(w1.x, t);
            let p2 = fetch_part(w2.x, t);
            let p3 = fetch_part(w3.x, t);
            add(p0, t, bitcast<f32>(w0.y));
            add(p1, t, bitcast<f32>(w1.y));
            add(p2, t, bitcast<f32>(w2.y));
            add(p3, t, bitcast<f32>(w3.y));
        }
    }
    if (mine != t) { return; }
    let y = step.out1 + (step.first_part + group.z) * step.out1_stride + row * step.cols;
    let low = low_column(t);
    let high = high_column(t);
    put(y, low, a0);
    put(y, low + 4u, a1);
    put(y, low + 8u, a2);
    put(y, low + 12u, a3);
    put(y, high, b0);
    put(y, high + 4u, b1);
    put(y, high + 8u, b2);
    put(y, high + 12u, b3);
}
