// attend for many rows: a workgroup takes 32 rows of one query head and walks over the visible positions, 64 at a time,
// so that keys and values are fetched once for all of them. Scores, running maxima and sums are f32. With several splits
// (group.z) each takes a stretch of the positions and leaves what it found for combine.wgsl.
// HEAD / PER is a power of two, at most 128.
override PER: u32 = 8u;             // values in a vector of the cache: 8 f16 or 4 f32
override HEAD: u32 = 256u;
override ACROSS: u32 = 32u;         // threads side by side over a row's values: the vectors of a head, at most 32
override VECTORS: u32 = HEAD / PER; // of a head
override CHUNKS: u32 = VECTORS / 4u; // of four vectors of a key, or of the same values of a query
override TALL: u32 = 256u / ACROSS; // threads over the rows
override HIGH: u32 = 32u / TALL;    // rows of a thread: 1, 2 or 4
override WIDE: u32 = VECTORS / ACROSS; // vectors of a thread
const KEYS = 64u;
const LOWEST = -3.0e38;

@group(0) @binding(3) var<storage, read> keys: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> values: array<vec4<u32>>;

// A chunk of the keys, [key][4]; then scores and their exponentials as bits, [key][rows by four]. Vectors lie where
// neighbouring threads do not meet in the same banks.
var<workgroup> held: array<vec4<u32>, 512>;
var<workgroup> query: array<vec4<f32>, 256>; // a chunk of the queries, [row][PER]
var<workgroup> most_of: array<f32, 256>;     // [eighth of the positions][row]
var<workgroup> sum_of: array<f32, 256>;
var<workgroup> highest: array<f32, 32>;      // of each row so far
var<workgroup> total: array<f32, 32>;
var<workgroup> shrink: array<f32, 32>;

fn more(sum: f32, a: vec4<f32>, b: vec4<f32>) -> f32 {
    return fma(a.w, b.w, fma(a.z, b.z, fma(a.y, b.y, fma(a.x, b.x, sum))));
}

// The same four values of four rows times those of a key.
fn rows4(sum: vec4<f32>, q0: vec4<f32>, q1: vec4<f32>, q2: vec4<f32>, q3: vec4<f32>, k: vec4<f32>) -> vec4<f32> {
    return vec4<f32>(more(sum.x, q0, k), more(sum.y, q1, k), more(sum.z, q2, k), more(sum.w, q3, k));
}

fn query_at(row: u32, i: u32) -> vec4<f32> { return query[row * PER + (i ^ ((row >> 2u) & (PER - 1u)))]; }
fn score_at(key: u32, four: u32) -> u32 { return key * 8u + (four ^ (key & 7u)); }

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>) {
    let n = live_rows();
    let row0 = group.y * 32u;
    if (row0 >= n) { return; }
    let kv_head = group.x / (step.heads / step.kv_heads);
    let last = min(row0 + 31u, n - 1u);
    let lowest = max(first_visible(row0), step.first_row);
    let behind = max(min(last_visible(last) + 1u, step.first_row + step.row_count), lowest);
    let stretch = (behind - lowest + KEYS * groups.z - 1u) / (KEYS * groups.z) * KEYS;
    let begin = min(lowest + group.z * stretch, behind);
    let end = min(begin + stretch, behind);
    // fetching: a vector of a key and one of a query
    let q = (step.in0 + min(row0 + local / PER, last) * step.in0_stride + group.x * HEAD) / 4u + local % PER;
    let q_to = local / PER * PER + ((local % PER) ^ (((local / PER) >> 2u) & (PER - 1u)));
    let k_to = local / 4u * 4u + ((local % 4u) ^ ((local >> 3u) & 3u));
    // scoring: four positions, four rows, half of the vectors
    let key = local % 16u;
    let four = (local / 16u) % 8u;
    let half0 = local / 128u * 2u;
    let lines = min(vec4<u32>(row0 + four * 4u) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(last));
    let lasts = vec4<u32>(last_visible(lines.x), last_visible(lines.y), last_visible(lines.z), last_visible(lines.w));
    let firsts = vec4<u32>(first_visible(lines.x), first_visible(lines.y), first_visible(lines.z), first_visible(lines.w));
    // softmax: an eighth of a row
    let line = local % 32u;
    let eighth = local / 32u * 8u;
    // adding up: HIGH rows and WIDE vectors
    let across = local % ACROSS;
    let down = local / ACROSS * HIGH;
    let ring = select(0xffffffffu, step.ring, step.ring > 0u);
    var sum: array<vec4<f32>, 16>; // [row][vector][low and high half]
    if (local < 32u) {
        highest[local] = LOWEST;
        total[local] = 0.0;
    }
    for (var j = begin; j < end; j += KEYS) {
        let k = (cache_row(min(j + local / 4u, end - 1u)) * step.kv_heads + kv_head) * VECTORS + local % 4u;
        var k_next = keys[k];
        var q_next = arena4[q];
        var s0 = vec4<f32>(); // [position] of four rows
        var s1 = vec4<f32>();
        var s2 = vec4<f32>();
        var s3 = vec4<f32>();
        for (var c = 0u; c < CHUNKS; c++) {
            workgroupBarrier();
            held[k_to] = k_next;
            if (local < 32u * PER) { query[q_to] = q_next; }
            workgroupBarrier();
            if (c + 1u < CHUNKS) { // under way while this chunk is used
                k_next = keys[k + (c + 1u) * 4u];
                q_next = arena4[q + (c + 1u) * PER];
            }
            for (var i = half0; i < half0 + 2u; i++) {
                let at = key * 4u + (i ^ ((key >> 1u) & 3u));
                let k0 = held[at];
                let k1 = held[at + 64u];
                let k2 = held[at + 128u];
                let k3 = held[at + 192u];
                var u = i * (PER / 4u);
                var q0 = query_at(four * 4u, u);
                var q1 = query_at(four * 4u + 1u, u);
                var q2 = query_at(four * 4u + 2u, u);
                var q3 = query_at(four * 4u + 3u, u);
                s0 = rows4(s0, q0, q1, q2, q3, low(k0));
                s1 = rows4(s1, q0, q1, q2, q3, low(k1));
                s2 = rows4(s2, q0, q1, q2, q3, low(k2));
                s3 = rows4(s3, q0, q1, q2, q3, low(k3));
                if (PER == 8u) {
                    u++;
                    q0 = query_at(four * 4u, u);
                    q1 = query_at(four * 4u + 1u, u);
                    q2 = query_at(four * 4u + 2u, u);
                    q3 = query_at(four * 4u + 3u, u);
                    s0 = rows4(s0, q0, q1, q2, q3, high(k0));
                    s1 = rows4(s1, q0, q1, q2, q3, high(k1));
                    s2 = rows4(s2, q0, q1, q2, q3, high(k2));
                    s3 = rows4(s3, q0, q1, q2, q3, high(k3));
                }
            }
        }
        workgroupBarrier(); // keys have been used
        let to = score_at(key, four); // positions 16 further lie 128 further
        if (half0 > 0u) {
            held[to] = bitcast<vec4<u32>>(s0);
            held[to + 128u] = bitcast<vec4<u32>>(s1);
            held[to + 256u] = bitcast<vec4<u32>>(s2);
            held[to + 384u] = bitcast<vec4<u32>>(s3);
        }
        workgroupBarrier();
        if (half0 == 0u) {
            let mine = array<vec4<f32>, 4>(s0, s1, s2, s3);
            for (var i = 0u; i < 4u; i++) {
                let p = vec4<u32>(j + key + 16u * i);
                let visible = (p <= lasts) & (p >= firsts) & (p < vec4<u32>(end));
                let s = mine[i] + bitcast<vec4<f32>>(held[to + 128u * i]);
                held[to + 128u * i] = bitcast<vec4<u32>>(select(vec4<f32>(LOWEST), s, visible));
            }
        }
        workgroupBarrier();
        var e: array<f32, 8>;
        var most = LOWEST;
        for (var i = 0u; i < 8u; i++) {
            e[i] = bitcast<f32>(held[score_at(eighth + i, line / 4u)][line % 4u]);
            most = max(most, e[i]);
        }
        most_of[local] = most;
        workgroupBarrier();
        let before = highest[line];
        most = before;
        for (var i = 0u; i < 8u; i++) { most = max(most, most_of[i * 32u + line]); }
        var all = 0.0;
        for (var i = 0u; i < 8u; i++) {
            let x = select(exp(max(e[i] - most, -80.0)), 0.0, e[i] == LOWEST);
            all += x;
            held[score_at(eighth + i, line / 4u)][line % 4u] = bitcast<u32>(x);
        }
        sum_of[local] = all;
        let by = select(exp(max(before - most, -80.0)), 0.0, before == LOWEST);
        if (local < 32u) { shrink[local] = by; }
        workgroupBarrier();
        if (local < 32u) {
            var t = total[local] * by;
            for (var i = 0u; i < 8u; i++) { t += sum_of[i * 32u + local]; }
            total[local] = t;
            highest[local] = most;
        }
        for (var r = 0u; r < HIGH; r++) {
            for (var w = 0u; w < WIDE * (PER / 4u); w++) { sum[r * WIDE * (PER / 4u) + w] *= shrink[down + r]; }
        }
        let count = min(KEYS, end - j);
        let first = cache_row(j);
        for (var t0 = 0u; t0 < count; t0 += 4u) {
            for (var w = 0u; w < WIDE; w++) {
                var value: array<vec4<u32>, 4>; // four positions are under way together
                for (var i = 0u; i < 4u; i++) {
                    var at = first + min(t0 + i, count - 1u);
                    at -= select(0u, ring, at >= ring);
                    value[i] = values[(at * step.kv_heads + kv_head) * VECTORS + across + w * ACROSS];
                }
                for (var i = 0u; i < 4u; i++) { // shares of positions behind the last are 0
                    let share = bitcast<vec4<f32>>(held[score_at(t0 + i, down / 4u)]);
                    let a = low(value[i]);
                    let b = high(value[i]);
                    for (var r = 0u; r < HIGH; r++) {
                        let x = vec4<f32>(select(share[(down & 3u) + r], share[r], HIGH == 4u));
                        let at = (r * WIDE + w) * (PER / 4u);
                        sum[at] = fma(x, a, sum[at]);
                        if (PER == 8u) { sum[at + 1u] = fma(x, b, sum[at + 1u]); }
                    }
                }
            }
        }
    }
    workgroupBarrier();
    for (var r = 0u; r < HIGH; r++) {
        let row = row0 + down + r;
        if (row > last) { break; }
        var y = (step.out0 + row * step.out0_stride + group.x * HEAD) / 4u;
        var whole = total[down + r];
        if (step.parts > 1u) {
            y = (step.out1 + ((row * step.heads + group.x) * step.parts + step.first_part + group.z) * (HEAD + 4u)) / 4u + 1u;
            if (across == 0u) { arena4[y - 1u] = vec4<f32>(highest[down + r], whole, 0.0, 0.0); }
            whole = 1.0;
        }
        for (var w = 0u; w < WIDE; w++) {
            let at = (r * WIDE + w) * (PER / 4u);
            let column = (across + w * ACROSS) * (PER / 4u);
            arena4[y + column] = sum[at] / whole;
            if (PER == 8u) { arena4[y + column + 1u] = sum[at + 1u] / whole; }
        }
    }
}
