// attend for many rows: a workgroup takes 32 rows of one query head and walks over the visible positions, 64 at a time,
// so that keys and values are fetched once for all of them. Scores, running maxima and sums are f32. With several splits
// (group.z) each takes a stretch of the positions and leaves what it found for combine.wgsl.
// Sums are single variables and their loops written out: arrays that the compiler does not take apart lie in memory, which
// makes this five times as slow.
override PER: u32 = 8u;                  // values in a vector of the cache: 8 f16 or 4 f32
override HEAD: u32 = 256u;               // a multiple of 64; HEAD / PER is a power of two
override THREADS: u32 = 128u;            // or 256, so that no thread has more than 64 sums
override VECTORS: u32 = HEAD / PER;      // of a head: threads side by side over a row's values
override HIGH: u32 = 32u * VECTORS / THREADS; // rows of a thread: 2, 4, 8 or 16
override CHUNK: u32 = 32u / PER;         // vectors of 32 values of a key, which are scored at a time
override SHARES: u32 = THREADS / 64u;    // of a chunk, each scored by 64 threads
override APART: u32 = THREADS / CHUNK;   // keys whose chunks are fetched by a load of every thread
override FETCHES: u32 = 64u / APART;     // loads: 1, 2 or 4
override LINES: u32 = THREADS / 32u;     // threads that share a row's softmax
const KEYS = 64u;
const LOWEST = -3.0e38;

@group(0) @binding(3) var<storage, read> keys: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> values: array<vec4<u32>>;

// A chunk of the keys, [key][CHUNK]; then scores and their exponentials as bits, [key][rows by four]. Vectors lie where
// neighbouring threads do not meet in the same banks.
var<workgroup> held: array<vec4<u32>, 512>;
var<workgroup> query: array<vec4<f32>, 256>; // the same values of the queries, [row][8]
var<workgroup> most_of: array<f32, 256>;     // [share of the positions][row]
var<workgroup> sum_of: array<f32, 256>;
var<workgroup> highest: array<f32, 32>;      // of each row so far
var<workgroup> total: array<f32, 32>;
var<workgroup> shrink: array<vec4<f32>, 8>;

fn key_slot(key: u32, i: u32) -> u32 {
    if (PER == 8u) { return key * 4u + (i ^ ((key >> 1u) & 3u)); }
    return key * 8u + (i ^ (key & 7u));
}
fn query_slot(row: u32, i: u32) -> u32 { return row * 8u + (i ^ ((row >> 2u) & 7u)); }
fn score_slot(key: u32, four: u32) -> u32 { return key * 8u + (four ^ (key & 7u)); }

fn key_at(position: u32, kv_head: u32) -> u32 { return (cache_row(position) * step.kv_heads + kv_head) * VECTORS; }

// Of the position i behind one in cache row `first`.
fn value_at(first: u32, i: u32, kv_head: u32) -> u32 {
    let row = first + i;
    return ((row - select(0u, step.ring, step.ring > 0u && row >= step.ring)) * step.kv_heads + kv_head) * VECTORS;
}

// ---- scores: a thread has eight positions, eight apart, of four rows

struct Queries { a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32> } // four values of each of four rows

var<private> s0: vec4<f32>;
var<private> s1: vec4<f32>;
var<private> s2: vec4<f32>;
var<private> s3: vec4<f32>;
var<private> s4: vec4<f32>;
var<private> s5: vec4<f32>;
var<private> s6: vec4<f32>;
var<private> s7: vec4<f32>;

fn queries_at(row: u32, i: u32) -> Queries {
    return Queries(query[query_slot(row, i)], query[query_slot(row + 1u, i)], query[query_slot(row + 2u, i)],
                   query[query_slot(row + 3u, i)]);
}

fn along(sum: f32, a: vec4<f32>, b: vec4<f32>) -> f32 {
    return fma(a.w, b.w, fma(a.z, b.z, fma(a.y, b.y, fma(a.x, b.x, sum))));
}

fn along4(sum: vec4<f32>, q: Queries, k: vec4<f32>) -> vec4<f32> {
    return vec4<f32>(along(sum.x, q.a, k), along(sum.y, q.b, k), along(sum.z, q.c, k), along(sum.w, q.d, k));
}

// A vector of a key times what the rows have there: q, and r for its high half.
fn scored(sum: vec4<f32>, q: Queries, r: Queries, key: vec4<u32>) -> vec4<f32> {
    let s = along4(sum, q, low(key));
    if (PER == 8u) { return along4(s, r, high(key)); }
    return s;
}

// Vector i of the chunk.
fn score(i: u32, key: u32, four: u32) {
    let q = queries_at(four * 4u, i * (PER / 4u));
    var r = q;
    if (PER == 8u) { r = queries_at(four * 4u, 2u * i + 1u); }
    let at = key_slot(key, i);
    s0 = scored(s0, q, r, held[at]);
    s1 = scored(s1, q, r, held[at + 8u * CHUNK]);
    s2 = scored(s2, q, r, held[at + 16u * CHUNK]);
    s3 = scored(s3, q, r, held[at + 24u * CHUNK]);
    s4 = scored(s4, q, r, held[at + 32u * CHUNK]);
    s5 = scored(s5, q, r, held[at + 40u * CHUNK]);
    s6 = scored(s6, q, r, held[at + 48u * CHUNK]);
    s7 = scored(s7, q, r, held[at + 56u * CHUNK]);
}

struct Visible { firsts: vec4<u32>, lasts: vec4<u32>, end: u32 } // positions that four rows see

fn sees_all(j: u32, sees: Visible) -> bool {
    return all(vec4<u32>(j) >= sees.firsts) && all(vec4<u32>(j + KEYS - 1u) <= sees.lasts) && j + KEYS <= sees.end;
}

// Scores of a position, as far as rows see it.
fn seen(scores: vec4<f32>, position: u32, sees: Visible) -> vec4<f32> {
    let p = vec4<u32>(position);
    return select(vec4<f32>(LOWEST), scores, (p <= sees.lasts) & (p >= sees.firsts) & (p < vec4<u32>(sees.end)));
}

// A thread's first four positions and its last four go different ways when shares are put together.
fn hide_first(position: u32, sees: Visible) {
    s0 = seen(s0, position, sees);
    s1 = seen(s1, position + 8u, sees);
    s2 = seen(s2, position + 16u, sees);
    s3 = seen(s3, position + 24u, sees);
}

fn hide_last(position: u32, sees: Visible) {
    s4 = seen(s4, position + 32u, sees);
    s5 = seen(s5, position + 40u, sees);
    s6 = seen(s6, position + 48u, sees);
    s7 = seen(s7, position + 56u, sees);
}

fn give_first(to: u32) {
    held[to] = bitcast<vec4<u32>>(s0);
    held[to + 64u] = bitcast<vec4<u32>>(s1);
    held[to + 128u] = bitcast<vec4<u32>>(s2);
    held[to + 192u] = bitcast<vec4<u32>>(s3);
}

fn give_last(to: u32) {
    held[to + 256u] = bitcast<vec4<u32>>(s4);
    held[to + 320u] = bitcast<vec4<u32>>(s5);
    held[to + 384u] = bitcast<vec4<u32>>(s6);
    held[to + 448u] = bitcast<vec4<u32>>(s7);
}

fn take_first(to: u32) {
    s0 += bitcast<vec4<f32>>(held[to]);
    s1 += bitcast<vec4<f32>>(held[to + 64u]);
    s2 += bitcast<vec4<f32>>(held[to + 128u]);
    s3 += bitcast<vec4<f32>>(held[to + 192u]);
}

fn take_last(to: u32) {
    s4 += bitcast<vec4<f32>>(held[to + 256u]);
    s5 += bitcast<vec4<f32>>(held[to + 320u]);
    s6 += bitcast<vec4<f32>>(held[to + 384u]);
    s7 += bitcast<vec4<f32>>(held[to + 448u]);
}

// ---- sums: a thread has HIGH rows of one vector

// Rows 0 to 3 and 4 to 7 of a thread; then, of f16, the high halves of both; of f32, rows 8 to 15.
var<private> y0: Square;
var<private> y1: Square;
var<private> y2: Square;
var<private> y3: Square;

fn times(s: Square, by: vec4<f32>) -> Square { return Square(s.a * by.x, s.b * by.y, s.c * by.z, s.d * by.w); }

// Of four rows, those of a thread first, where it has but two of them.
fn own_first(four: vec4<f32>, row: u32) -> vec4<f32> {
    if (HIGH == 2u) { return select(four, four.zwxy, (row & 2u) != 0u); }
    return four;
}

fn shrink_sums(row: u32) {
    let by0 = own_first(shrink[row / 4u], row);
    y0 = times(y0, by0);
    if (PER == 8u) { y2 = times(y2, by0); }
    if (HIGH > 4u) {
        let by1 = shrink[row / 4u + 1u];
        y1 = times(y1, by1);
        if (PER == 8u) { y3 = times(y3, by1); }
    }
    if (HIGH > 8u) {
        y2 = times(y2, shrink[row / 4u + 2u]);
        y3 = times(y3, shrink[row / 4u + 3u]);
    }
}

fn shares_at(position: u32, four: u32) -> vec4<f32> { return bitcast<vec4<f32>>(held[score_slot(position, four)]); }

// A position's values into the sums of the rows from `row` on.
fn add(position: u32, value: vec4<u32>, row: u32) {
    let v = low(value);
    let by0 = own_first(shares_at(position, row / 4u), row);
    y0 = more(y0, by0, v);
    if (PER == 8u) { y2 = more(y2, by0, high(value)); }
    if (HIGH > 4u) {
        let by1 = shares_at(position, row / 4u + 1u);
        y1 = more(y1, by1, v);
        if (PER == 8u) { y3 = more(y3, by1, high(value)); }
    }
    if (HIGH > 8u) {
        y2 = more(y2, shares_at(position, row / 4u + 2u), v);
        y3 = more(y3, shares_at(position, row / 4u + 3u), v);
    }
}

// Where a split leaves what it found of a row: maximum and sum, then columns.
fn part_of(row: u32, group: vec3<u32>) -> u32 {
    return (step.out1 + ((row * step.heads + group.x) * step.parts + step.first_part + group.z) * (HEAD + 4u)) / 4u;
}

fn put(sum: vec4<f32>, at: u32, row0: u32, last: u32, group: vec3<u32>, column: u32) {
    let row = row0 + at;
    if (row > last) { return; }
    if (step.parts > 1u) {
        arena4[part_of(row, group) + 1u + column] = sum;
    } else {
        arena4[(step.out0 + row * step.out0_stride + group.x * HEAD) / 4u + column] = sum / total[at];
    }
}

// Rows from `at` of the workgroup's on.
fn put4(s: Square, at: u32, row0: u32, last: u32, group: vec3<u32>, column: u32) {
    put(s.a, at, row0, last, group, column);
    put(s.b, at + 1u, row0, last, group, column);
    if (HIGH > 2u) {
        put(s.c, at + 2u, row0, last, group, column);
        put(s.d, at + 3u, row0, last, group, column);
    }
}

@compute @workgroup_size(THREADS)
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
    // fetching: vectors of keys APART from each other, and one or two of queries, 16 rows apart
    let k_row = local / CHUNK;
    let k_vector = local % CHUNK;
    let q_row = local / 8u;
    let q_vector = local % 8u;
    let q0 = (step.in0 + min(row0 + q_row, last) * step.in0_stride + group.x * HEAD) / 4u + q_vector;
    let q1 = (step.in0 + min(row0 + q_row + 16u, last) * step.in0_stride + group.x * HEAD) / 4u + q_vector;
    // scoring
    let key = local % 8u;
    let four = (local / 8u) % 8u;
    let share = local / 64u;
    let vector0 = share * (CHUNK / SHARES);
    let lines = min(vec4<u32>(row0 + four * 4u) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(last));
    let sees = Visible(
        vec4<u32>(first_visible(lines.x), first_visible(lines.y), first_visible(lines.z), first_visible(lines.w)),
        vec4<u32>(last_visible(lines.x), last_visible(lines.y), last_visible(lines.z), last_visible(lines.w)), end);
    // softmax: some positions of a row
    let line = local % 32u;
    let position0 = local / 32u * (KEYS / LINES);
    // adding up
    let across = local % VECTORS;
    let down = local / VECTORS * HIGH;
    if (local < 32u) {
        highest[local] = LOWEST;
        total[local] = 0.0;
    }
    for (var j = begin; j < end; j += KEYS) {
        let k0 = key_at(min(j + k_row, end - 1u), kv_head) + k_vector;
        let k1 = key_at(min(j + k_row + APART, end - 1u), kv_head) + k_vector;
        let k2 = key_at(min(j + k_row + 2u * APART, end - 1u), kv_head) + k_vector;
        let k3 = key_at(min(j + k_row + 3u * APART, end - 1u), kv_head) + k_vector;
        var key0 = keys[k0];
        var key1 = key0;
        var key2 = key0;
        var key3 = key0;
        if (FETCHES > 1u) { key1 = keys[k1]; }
        if (FETCHES > 2u) {
            key2 = keys[k2];
            key3 = keys[k3];
        }
        var query0 = arena4[q0];
        var query1 = query0;
        if (THREADS == 128u) { query1 = arena4[q1]; }
        s0 = vec4<f32>();
        s1 = vec4<f32>();
        s2 = vec4<f32>();
        s3 = vec4<f32>();
        s4 = vec4<f32>();
        s5 = vec4<f32>();
        s6 = vec4<f32>();
        s7 = vec4<f32>();
        for (var value = 0u; value < HEAD; value += 32u) {
            workgroupBarrier();
            held[key_slot(k_row, k_vector)] = key0;
            if (FETCHES > 1u) { held[key_slot(k_row + APART, k_vector)] = key1; }
            if (FETCHES > 2u) {
                held[key_slot(k_row + 2u * APART, k_vector)] = key2;
                held[key_slot(k_row + 3u * APART, k_vector)] = key3;
            }
            query[query_slot(q_row, q_vector)] = query0;
            if (THREADS == 128u) { query[query_slot(q_row + 16u, q_vector)] = query1; }
            workgroupBarrier();
            if (value + 32u < HEAD) { // under way while this chunk is used
                let next = (value + 32u) / PER;
                key0 = keys[k0 + next];
                if (FETCHES > 1u) { key1 = keys[k1 + next]; }
                if (FETCHES > 2u) {
                    key2 = keys[k2 + next];
                    key3 = keys[k3 + next];
                }
                query0 = arena4[q0 + value / 4u + 8u];
                if (THREADS == 128u) { query1 = arena4[q1 + value / 4u + 8u]; }
            }
            score(vector0, key, four);
            if (CHUNK / SHARES > 1u) { score(vector0 + 1u, key, four); }
            if (CHUNK / SHARES > 2u) {
                score(vector0 + 2u, key, four);
                score(vector0 + 3u, key, four);
            }
        }
        let first = cache_row(j);
        let final_one = min(KEYS, end - j) - 1u; // shares of positions behind it are 0
        var v0 = values[value_at(first, 0u, kv_head) + across]; // under way while scores become shares
        var v1 = values[value_at(first, min(1u, final_one), kv_head) + across];
        var v2 = values[value_at(first, min(2u, final_one), kv_head) + across];
        var v3 = values[value_at(first, min(3u, final_one), kv_head) + across];
        // scores of shares together: of four into two, then each of two makes half of the positions
        let to = score_slot(key, four); // positions 8 further lie 64 further
        let hidden = !sees_all(j, sees);
        if (SHARES == 4u) {
            for (var i = 0u; i < 2u; i++) {
                workgroupBarrier(); // keys have been used, or what was given
                if (share == 2u + i) {
                    give_first(to);
                    give_last(to);
                }
                workgroupBarrier();
                if (share == i) {
                    take_first(to);
                    take_last(to);
                }
            }
        }
        workgroupBarrier(); // keys have been used, or what was given
        if (share == 0u) { give_last(to); }
        if (share == 1u) { give_first(to); }
        workgroupBarrier();
        if (share == 0u) {
            take_first(to);
            if (hidden) { hide_first(j + key, sees); }
            give_first(to);
        }
        if (share == 1u) {
            take_last(to);
            if (hidden) { hide_last(j + key, sees); }
            give_last(to);
        }
        workgroupBarrier();
        var e: array<f32, 16>;
        var most = LOWEST;
        for (var i = 0u; i < KEYS / LINES; i++) {
            e[i] = bitcast<f32>(held[score_slot(position0 + i, line / 4u)][line % 4u]);
            most = max(most, e[i]);
        }
        most_of[local] = most;
        workgroupBarrier();
        let before = highest[line];
        most = before;
        for (var i = 0u; i < LINES; i++) { most = max(most, most_of[i * 32u + line]); }
        var all = 0.0;
        for (var i = 0u; i < KEYS / LINES; i++) {
            let x = select(exp(max(e[i] - most, -80.0)), 0.0, e[i] == LOWEST);
            all += x;
            held[score_slot(position0 + i, line / 4u)][line % 4u] = bitcast<u32>(x);
        }
        sum_of[local] = all;
        let by = select(exp(max(before - most, -80.0)), 0.0, before == LOWEST);
        if (local < 32u) { shrink[local / 4u][local % 4u] = by; }
        workgroupBarrier();
        if (local < 32u) {
            var t = total[local] * by;
            for (var i = 0u; i < LINES; i++) { t += sum_of[i * 32u + local]; }
            total[local] = t;
            highest[local] = most;
        }
        shrink_sums(down);
        for (var t = 0u; t <= final_one; t += 4u) {
            let w0 = v0;
            let w1 = v1;
            let w2 = v2;
            let w3 = v3;
            v0 = values[value_at(first, min(t + 4u, final_one), kv_head) + across]; // under way while those are used
            v1 = values[value_at(first, min(t + 5u, final_one), kv_head) + across];
            v2 = values[value_at(first, min(t + 6u, final_one), kv_head) + across];
            v3 = values[value_at(first, min(t + 7u, final_one), kv_head) + across];
            add(t, w0, down);
            add(t + 1u, w1, down);
            add(t + 2u, w2, down);
            add(t + 3u, w3, down);
        }
    }
    workgroupBarrier();
    let column = across * (PER / 4u);
    put4(y0, down, row0, last, group, column);
    if (HIGH > 4u) { put4(y1, down + 4u, row0, last, group, column); }
    if (PER == 8u) {
        put4(y2, down, row0, last, group, column + 1u);
        if (HIGH > 4u) { put4(y3, down + 4u, row0, last, group, column + 1u); }
    } else if (HIGH > 8u) {
        put4(y2, down + 8u, row0, last, group, column);
        put4(y3, down + 12u, row0, last, group, column);
    }
    if (step.parts > 1u && local < 32u && row0 + local <= last) {
        arena4[part_of(row0 + local, group)] = vec4<f32>(highest[local], total[local], 0.0, 0.0);
    }
}
