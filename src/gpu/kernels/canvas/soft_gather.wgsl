// uses: canvas/soft <gather>
// soft_gather: partial sums of e * table[token] over a part of a row's list.
// table: [vocabulary][cols]; out1: [part][rows][cols]. One workgroup per row, part of the list, and range of columns;
// tokens outside this binding are skipped. Four tokens' weights are loaded at once, so that a thread does not wait for
// each.
override THREADS: u32 = 64u;
const STAGE = 128u; // entries in workgroup memory, a multiple of four

var<workgroup> span: vec3<u32>;                  // 1 if the part exists; first entry, end
var<workgroup> entries: array<vec2<u32>, STAGE>; // byte offset in the table, weight

// First entry of a list whose token is not below `token`.
fn first_from(list: u32, begin: u32, end: u32, token: u32) -> u32 {
    var low = begin;
    var high = end;
    while (low < high) {
        let i = (low + high) / 2u;
        if (u32(arena[list + i]) < token) { low = i + 1u; } else { high = i; }
    }
    return low;
}

fn store(y: u32, column: u32, v: vec4<f32>) {
    for (var i = 0u; i < 4u; i++) {
        if (column + i < params.cols) { arena[y + column + i] = v[i]; }
    }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y;
    if (row >= live_rows() || !group_all_fit(local)) { return; }
    let list = params.list + listed_before(row);
    if (local == 0u) {
        let count = listed_of(row);
        var begin = min(group.z * part_entries(count), count);
        var end = min(begin + part_entries(count), count);
        let exists = select(0u, 1u, begin < end);
        if (params.row_count < params.vocab) { // one of several bindings
            begin = first_from(list, begin, end, params.first_row);
            end = first_from(list, begin, end, params.first_row + params.row_count);
        }
        span = vec3<u32>(exists, begin, end);
    }
    let part = workgroupUniformLoad(&span);
    if (part.x == 0u) { return; }
    let e0 = params.in0 + row * params.in0_stride;
    let mine = group.x * THREADS + local;
    let t = min(mine, 2u * ((params.cols + 63u) / 64u) - 1u);
    for (var first = part.y; first < part.z; first += STAGE) {
        workgroupBarrier();
        for (var i = local; i < STAGE; i += THREADS) { // past the end: the last one, times 0
            let token = u32(arena[list + min(first + i, part.z - 1u)]);
            let e = select(0.0, arena[e0 + token], first + i < part.z);
            entries[i] = vec2<u32>((token - params.first_row) * params.row_bytes, bitcast<u32>(e));
        }
        workgroupBarrier();
        for (var i = 0u; i < min(STAGE, part.z - first); i += 4u) {
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
    let y = params.out1 + (params.first_part + group.z) * params.out1_stride + row * params.cols;
    let low = low_column(t);
    let high = high_column(t);
    store(y, low, a0);
    store(y, low + 4u, a1);
    store(y, low + 8u, a2);
    store(y, low + 12u, a3);
    store(y, high, b0);
    store(y, high + 4u, b1);
    store(y, high + 8u, b2);
    store(y, high + 12u, b3);
}
