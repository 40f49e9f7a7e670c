// uses: params.attention attention/visible attention/cache <vectors> common/arena4 common/sums4x4
// attend_tile: attend for more than 8 rows, prompts. y = softmax(q K^T) V, scores, maxima and sums in f32.
// q: [rows][heads][HEAD] (in0); K, V: the cache, [position][kv_heads][HEAD]; y: [rows][heads][HEAD] (out0), or partial
// results (max, sum, two unused, columns) at out1 for attention/combine where there are several splits or bindings.
//
// A workgroup takes 32 rows of one query head and walks over the visible positions, 64 at a time, so that a key or
// value that was loaded serves all of them: all rows belong to one sequence. With several splits (group.z) each takes a
// range of the positions.
// Sums are single variables and their loops are written out: an array that the compiler does not split up lies in
// memory, which makes this five times as slow.
override HEAD: u32 = 256u;         // a multiple of 64; HEAD / CACHE_PER_VEC4 is a power of two
override THREADS: u32 = 128u;      // or 256: a thread has at most 64 sums
override VECTORS: u32 = HEAD / CACHE_PER_VEC4;      // vectors of a head: threads over the values of a row
override THREAD_ROWS: u32 = 32u * VECTORS / THREADS; // rows per thread: 2, 4, 8 or 16
override CHUNK: u32 = 32u / CACHE_PER_VEC4;         // vectors of the 32 values of a key that are scored at a time
override PARTS: u32 = THREADS / 64u;    // parts of a chunk, each scored by 64 threads
override KEY_DISTANCE: u32 = THREADS / CHUNK;   // keys whose chunks one load of every thread covers
override LOADS: u32 = 64u / KEY_DISTANCE;     // loads per thread: 1, 2 or 4
override ROW_THREADS: u32 = THREADS / 32u;     // threads of a row's softmax
const KEYS = 64u;
const LOWEST = -3.0e38;

// A chunk of the keys, [key][CHUNK], as f16 or f32; then scores and their exponentials as bits, [key][row / 4]. Vectors are swizzled
// so that neighboring threads do not part banks.
var<workgroup> keys_or_scores: array<vec4<u32>, 512>;
var<workgroup> query: array<vec4<f32>, 256>; // the same 32 values of the queries, [row][8]
var<workgroup> part_max: array<f32, 256>;    // [part of the positions][row]
var<workgroup> part_sum: array<f32, 256>;
var<workgroup> row_max: array<f32, 32>; // so far
var<workgroup> row_sum: array<f32, 32>;
var<workgroup> rescale: array<vec4<f32>, 8>;

fn key_slot(key: u32, i: u32) -> u32 {
    if (CACHE_PER_VEC4 == 8u) { return key * 4u + (i ^ ((key >> 1u) & 3u)); }
    return key * 8u + (i ^ (key & 7u));
}
fn query_slot(row: u32, i: u32) -> u32 { return row * 8u + (i ^ ((row >> 2u) & 7u)); }
fn score_slot(key: u32, four: u32) -> u32 { return key * 8u + (four ^ (key & 7u)); }

fn key_at(cache: u32, position: u32, kv_head: u32) -> u32 { return (cache_row(cache, position) * params.kv_heads + kv_head) * head_vectors(); }

// Values of the position i after one whose row is first rows after `cache`.
fn value_at(cache: u32, first: u32, i: u32, kv_head: u32) -> u32 {
    let row = first + i;
    return ((cache + row - select(0u, params.ring, params.ring > 0u && row >= params.ring)) * params.kv_heads + kv_head) * head_vectors();
}

// Scores: a thread has eight positions, eight apart, of four rows.

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

fn dot_fma(sum: f32, a: vec4<f32>, b: vec4<f32>) -> f32 {
    return fma(a.w, b.w, fma(a.z, b.z, fma(a.y, b.y, fma(a.x, b.x, sum))));
}

fn dot_rows(sum: vec4<f32>, q: Queries, k: vec4<f32>) -> vec4<f32> {
    return vec4<f32>(dot_fma(sum.x, q.a, k), dot_fma(sum.y, q.b, k), dot_fma(sum.z, q.c, k), dot_fma(sum.w, q.d, k));
}

fn chunk_low(key: vec4<u32>) -> vec4<f32> {
    if (CACHE_PER_VEC4 == 8u) { return vec4<f32>(unpack2x16float(key.x), unpack2x16float(key.y)); }
    return bitcast<vec4<f32>>(key);
}

fn chunk_high(key: vec4<u32>) -> vec4<f32> { return vec4<f32>(unpack2x16float(key.z), unpack2x16float(key.w)); }

// A key vector scaled the rows' values: q, and r for its high half.
fn scored(sum: vec4<f32>, q: Queries, r: Queries, key: vec4<u32>) -> vec4<f32> {
    let s = dot_rows(sum, q, chunk_low(key));
    if (CACHE_PER_VEC4 == 8u) { return dot_rows(s, r, chunk_high(key)); }
    return s;
}

// Vector i of the chunk.
fn score(i: u32, key: u32, four: u32) {
    let q = queries_at(four * 4u, i * (CACHE_PER_VEC4 / 4u));
    var r = q;
    if (CACHE_PER_VEC4 == 8u) { r = queries_at(four * 4u, 2u * i + 1u); }
    let at = key_slot(key, i);
    s0 = scored(s0, q, r, keys_or_scores[at]);
    s1 = scored(s1, q, r, keys_or_scores[at + 8u * CHUNK]);
    s2 = scored(s2, q, r, keys_or_scores[at + 16u * CHUNK]);
    s3 = scored(s3, q, r, keys_or_scores[at + 24u * CHUNK]);
    s4 = scored(s4, q, r, keys_or_scores[at + 32u * CHUNK]);
    s5 = scored(s5, q, r, keys_or_scores[at + 40u * CHUNK]);
    s6 = scored(s6, q, r, keys_or_scores[at + 48u * CHUNK]);
    s7 = scored(s7, q, r, keys_or_scores[at + 56u * CHUNK]);
}

struct Visible { firsts: vec4<u32>, lasts: vec4<u32>, end: u32 } // positions that four rows see

fn sees_all(j: u32, sees: Visible) -> bool {
    return all(vec4<u32>(j) >= sees.firsts) && all(vec4<u32>(j + KEYS - 1u) <= sees.lasts) && j + KEYS <= sees.end;
}

// Scores of a position, LOWEST for rows that do not see it.
fn masked(scores: vec4<f32>, position: u32, sees: Visible) -> vec4<f32> {
    let p = vec4<u32>(position);
    return select(vec4<f32>(LOWEST), scores, (p <= sees.lasts) & (p >= sees.firsts) & (p < vec4<u32>(sees.end)));
}

// The first four and the last four positions of a thread are combined by different threads.
fn mask_first(position: u32, sees: Visible) {
    s0 = masked(s0, position, sees);
    s1 = masked(s1, position + 8u, sees);
    s2 = masked(s2, position + 16u, sees);
    s3 = masked(s3, position + 24u, sees);
}

fn mask_last(position: u32, sees: Visible) {
    s4 = masked(s4, position + 32u, sees);
    s5 = masked(s5, position + 40u, sees);
    s6 = masked(s6, position + 48u, sees);
    s7 = masked(s7, position + 56u, sees);
}

fn store_first(to: u32) {
    keys_or_scores[to] = bitcast<vec4<u32>>(s0);
    keys_or_scores[to + 64u] = bitcast<vec4<u32>>(s1);
    keys_or_scores[to + 128u] = bitcast<vec4<u32>>(s2);
    keys_or_scores[to + 192u] = bitcast<vec4<u32>>(s3);
}

fn store_last(to: u32) {
    keys_or_scores[to + 256u] = bitcast<vec4<u32>>(s4);
    keys_or_scores[to + 320u] = bitcast<vec4<u32>>(s5);
    keys_or_scores[to + 384u] = bitcast<vec4<u32>>(s6);
    keys_or_scores[to + 448u] = bitcast<vec4<u32>>(s7);
}

fn add_first(to: u32) {
    s0 += bitcast<vec4<f32>>(keys_or_scores[to]);
    s1 += bitcast<vec4<f32>>(keys_or_scores[to + 64u]);
    s2 += bitcast<vec4<f32>>(keys_or_scores[to + 128u]);
    s3 += bitcast<vec4<f32>>(keys_or_scores[to + 192u]);
}

fn add_last(to: u32) {
    s4 += bitcast<vec4<f32>>(keys_or_scores[to + 256u]);
    s5 += bitcast<vec4<f32>>(keys_or_scores[to + 320u]);
    s6 += bitcast<vec4<f32>>(keys_or_scores[to + 384u]);
    s7 += bitcast<vec4<f32>>(keys_or_scores[to + 448u]);
}

// Sums: a thread has THREAD_ROWS rows of one vector.

// Rows 0 to 3 and 4 to 7 of a thread; then for f16 the high halves of both, for f32 rows 8 to 15.
var<private> y0: Sums4x4;
var<private> y1: Sums4x4;
var<private> y2: Sums4x4;
var<private> y3: Sums4x4;

fn scaled(s: Sums4x4, by: vec4<f32>) -> Sums4x4 { return Sums4x4(s.a * by.x, s.b * by.y, s.c * by.z, s.d * by.w); }

// The thread's own rows first, where it has only two of the four.
fn own_first(four: vec4<f32>, row: u32) -> vec4<f32> {
    if (THREAD_ROWS == 2u) { return select(four, four.zwxy, (row & 2u) != 0u); }
    return four;
}

fn rescale_sums(row: u32) {
    let by0 = own_first(rescale[row / 4u], row);
    y0 = scaled(y0, by0);
    if (CACHE_PER_VEC4 == 8u) { y2 = scaled(y2, by0); }
    if (THREAD_ROWS > 4u) {
        let by1 = rescale[row / 4u + 1u];
        y1 = scaled(y1, by1);
        if (CACHE_PER_VEC4 == 8u) { y3 = scaled(y3, by1); }
    }
    if (THREAD_ROWS > 8u) {
        y2 = scaled(y2, rescale[row / 4u + 2u]);
        y3 = scaled(y3, rescale[row / 4u + 3u]);
    }
}

fn weights_at(position: u32, four: u32) -> vec4<f32> { return bitcast<vec4<f32>>(keys_or_scores[score_slot(position, four)]); }

// Adds a position's values to the sums of the rows from `row` on.
fn add(position: u32, value: Vector, row: u32) {
    let v = scale_of(value) * low_half(value);
    let by0 = own_first(weights_at(position, row / 4u), row);
    y0 = add_outer(y0, by0, v);
    if (CACHE_PER_VEC4 == 8u) { y2 = add_outer(y2, by0, scale_of(value) * high_half(value)); }
    if (THREAD_ROWS > 4u) {
        let by1 = weights_at(position, row / 4u + 1u);
        y1 = add_outer(y1, by1, v);
        if (CACHE_PER_VEC4 == 8u) { y3 = add_outer(y3, by1, scale_of(value) * high_half(value)); }
    }
    if (THREAD_ROWS > 8u) {
        y2 = add_outer(y2, weights_at(position, row / 4u + 2u), v);
        y3 = add_outer(y3, weights_at(position, row / 4u + 3u), v);
    }
}

// Partial result of a row: maximum and sum, then columns.
fn partial_at(row: u32, group: vec3<u32>) -> u32 {
    return (params.out1 + ((row * params.heads + group.x) * params.parts + params.first_part + group.z) * (HEAD + 4u)) / 4u;
}

fn store(sum: vec4<f32>, at: u32, row0: u32, last: u32, group: vec3<u32>, column: u32) {
    let row = row0 + at;
    if (row > last) { return; }
    if (params.parts > 1u) {
        arena4[partial_at(row, group) + 1u + column] = sum;
    } else {
        arena4[(params.out0 + row * params.out0_stride + group.x * HEAD) / 4u + column] = sum / row_sum[at];
    }
}

// Rows from row `at` of the workgroup on.
fn store4(s: Sums4x4, at: u32, row0: u32, last: u32, group: vec3<u32>, column: u32) {
    store(s.a, at, row0, last, group, column);
    store(s.b, at + 1u, row0, last, group, column);
    if (THREAD_ROWS > 2u) {
        store(s.c, at + 2u, row0, last, group, column);
        store(s.d, at + 3u, row0, last, group, column);
    }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>) {
    let n = live_rows();
    let row0 = group.y * 32u;
    if (row0 >= n) { return; }
    let kv_head = group.x / (params.heads / params.kv_heads);
    let last = min(row0 + 31u, n - 1u);
    let cache = cache_of(row0);
    let first_position = max(first_visible(row0), bound_begin(row0));
    let end_position = max(min(last_visible(last) + 1u, bound_end(row0)), first_position);
    let range = (end_position - first_position + KEYS * groups.z - 1u) / (KEYS * groups.z) * KEYS;
    let begin = min(first_position + group.z * range, end_position);
    let end = min(begin + range, end_position);
    // loading: key vectors KEY_DISTANCE apart, and one or two of queries, 16 rows apart
    let k_row = local / CHUNK;
    let k_vector = local % CHUNK;
    let q_row = local / 8u;
    let q_vector = local % 8u;
    let q0 = (params.in0 + min(row0 + q_row, last) * params.in0_stride + group.x * HEAD) / 4u + q_vector;
    let q1 = (params.in0 + min(row0 + q_row + 16u, last) * params.in0_stride + group.x * HEAD) / 4u + q_vector;
    // scoring
    let key = local % 8u;
    let four = (local / 8u) % 8u;
    let part = local / 64u;
    let vector0 = part * (CHUNK / PARTS);
    let lines = min(vec4<u32>(row0 + four * 4u) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(last));
    let sees = Visible(
        vec4<u32>(first_visible(lines.x), first_visible(lines.y), first_visible(lines.z), first_visible(lines.w)),
        vec4<u32>(last_visible(lines.x), last_visible(lines.y), last_visible(lines.z), last_visible(lines.w)), end);
    // softmax: a range of positions of a row
    let line = local % 32u;
    let position0 = local / 32u * (KEYS / ROW_THREADS);
    // accumulating
    let across = local % VECTORS;
    let down = local / VECTORS * THREAD_ROWS;
    if (local < 32u) {
        row_max[local] = LOWEST;
        row_sum[local] = 0.0;
    }
    for (var j = begin; j < end; j += KEYS) {
        let k0 = key_at(cache, min(j + k_row, end - 1u), kv_head);
        let k1 = key_at(cache, min(j + k_row + KEY_DISTANCE, end - 1u), kv_head);
        let k2 = key_at(cache, min(j + k_row + 2u * KEY_DISTANCE, end - 1u), kv_head);
        let k3 = key_at(cache, min(j + k_row + 3u * KEY_DISTANCE, end - 1u), kv_head);
        var key0 = key_vector(k0, k_vector);
        var key1 = key0;
        var key2 = key0;
        var key3 = key0;
        if (LOADS > 1u) { key1 = key_vector(k1, k_vector); }
        if (LOADS > 2u) {
            key2 = key_vector(k2, k_vector);
            key3 = key_vector(k3, k_vector);
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
            keys_or_scores[key_slot(k_row, k_vector)] = in_chunk(key0);
            if (LOADS > 1u) { keys_or_scores[key_slot(k_row + KEY_DISTANCE, k_vector)] = in_chunk(key1); }
            if (LOADS > 2u) {
                keys_or_scores[key_slot(k_row + 2u * KEY_DISTANCE, k_vector)] = in_chunk(key2);
                keys_or_scores[key_slot(k_row + 3u * KEY_DISTANCE, k_vector)] = in_chunk(key3);
            }
            query[query_slot(q_row, q_vector)] = query0;
            if (THREADS == 128u) { query[query_slot(q_row + 16u, q_vector)] = query1; }
            workgroupBarrier();
            if (value + 32u < HEAD) { // in flight while this chunk is used
                let next = k_vector + (value + 32u) / CACHE_PER_VEC4;
                key0 = key_vector(k0, next);
                if (LOADS > 1u) { key1 = key_vector(k1, next); }
                if (LOADS > 2u) {
                    key2 = key_vector(k2, next);
                    key3 = key_vector(k3, next);
                }
                query0 = arena4[q0 + value / 4u + 8u];
                if (THREADS == 128u) { query1 = arena4[q1 + value / 4u + 8u]; }
            }
            score(vector0, key, four);
            if (CHUNK / PARTS > 1u) { score(vector0 + 1u, key, four); }
            if (CHUNK / PARTS > 2u) {
                score(vector0 + 2u, key, four);
                score(vector0 + 3u, key, four);
            }
        }
        let first = cache_row(0u, j);
        let final_one = min(KEYS, end - j) - 1u; // weights of later positions are 0
        var v0 = value_vector(value_at(cache, first, 0u, kv_head), across); // in flight while scores become weights
        var v1 = value_vector(value_at(cache, first, min(1u, final_one), kv_head), across);
        var v2 = value_vector(value_at(cache, first, min(2u, final_one), kv_head), across);
        var v3 = value_vector(value_at(cache, first, min(3u, final_one), kv_head), across);
        // add the parts' scores: four into two, then each of the two finishes half of the positions
        let to = score_slot(key, four); // position + 8 is at + 64
        let needs_mask = !sees_all(j, sees);
        if (PARTS == 4u) {
            for (var i = 0u; i < 2u; i++) {
                workgroupBarrier(); // keys, or stored scores, have been read
                if (part == 2u + i) {
                    store_first(to);
                    store_last(to);
                }
                workgroupBarrier();
                if (part == i) {
                    add_first(to);
                    add_last(to);
                }
            }
        }
        workgroupBarrier(); // keys, or stored scores, have been read
        if (part == 0u) { store_last(to); }
        if (part == 1u) { store_first(to); }
        workgroupBarrier();
        if (part == 0u) {
            add_first(to);
            if (needs_mask) { mask_first(j + key, sees); }
            store_first(to);
        }
        if (part == 1u) {
            add_last(to);
            if (needs_mask) { mask_last(j + key, sees); }
            store_last(to);
        }
        workgroupBarrier();
        var e: array<f32, 16>;
        var high = LOWEST;
        for (var i = 0u; i < KEYS / ROW_THREADS; i++) {
            e[i] = bitcast<f32>(keys_or_scores[score_slot(position0 + i, line / 4u)][line % 4u]);
            high = max(high, e[i]);
        }
        part_max[local] = high;
        workgroupBarrier();
        let before = row_max[line];
        high = before;
        for (var i = 0u; i < ROW_THREADS; i++) { high = max(high, part_max[i * 32u + line]); }
        var all = 0.0;
        for (var i = 0u; i < KEYS / ROW_THREADS; i++) {
            let x = select(exp(max(e[i] - high, -80.0)), 0.0, e[i] == LOWEST);
            all += x;
            keys_or_scores[score_slot(position0 + i, line / 4u)][line % 4u] = bitcast<u32>(x);
        }
        part_sum[local] = all;
        let by = select(exp(max(before - high, -80.0)), 0.0, before == LOWEST);
        if (local < 32u) { rescale[local / 4u][local % 4u] = by; }
        workgroupBarrier();
        if (local < 32u) {
            var t = row_sum[local] * by;
            for (var i = 0u; i < ROW_THREADS; i++) { t += part_sum[i * 32u + local]; }
            row_sum[local] = t;
            row_max[local] = high;
        }
        rescale_sums(down);
        for (var t = 0u; t <= final_one; t += 4u) {
            let w0 = v0;
            let w1 = v1;
            let w2 = v2;
            let w3 = v3;
            v0 = value_vector(value_at(cache, first, min(t + 4u, final_one), kv_head), across); // in flight while those are used
            v1 = value_vector(value_at(cache, first, min(t + 5u, final_one), kv_head), across);
            v2 = value_vector(value_at(cache, first, min(t + 6u, final_one), kv_head), across);
            v3 = value_vector(value_at(cache, first, min(t + 7u, final_one), kv_head), across);
            add(t, w0, down);
            add(t + 1u, w1, down);
            add(t + 2u, w2, down);
            add(t + 3u, w3, down);
        }
    }
    workgroupBarrier();
    let column = across * (CACHE_PER_VEC4 / 4u);
    store4(y0, down, row0, last, group, column);
    if (THREAD_ROWS > 4u) { store4(y1, down + 4u, row0, last, group, column); }
    if (CACHE_PER_VEC4 == 8u) {
        store4(y2, down, row0, last, group, column + 1u);
        if (THREAD_ROWS > 4u) { store4(y3, down + 4u, row0, last, group, column + 1u); }
    } else if (THREAD_ROWS > 8u) {
        store4(y2, down + 8u, row0, last, group, column);
        store4(y3, down + 12u, row0, last, group, column);
    }
    if (params.parts > 1u && local < 32u && row0 + local <= last) {
        arena4[partial_at(row0 + local, group)] = vec4<f32>(row_max[local], row_sum[local], 0.0, 0.0);
    }
}
