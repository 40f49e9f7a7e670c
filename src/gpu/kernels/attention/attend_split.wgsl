// uses: <sum> <vectors> params.attention attention/visible attention/cache attention/rotate_query common/arena
// attend_split: attend for up to 8 rows, decoding. Partial results of attention over a range of the visible positions,
// and before it the query's norm and rope (ROTATE).
// q: [rows][heads][HEAD] (in0); K, V: the cache, [position][kv_heads][HEAD]; out1: [row][head][part] of (max, sum, two
// unused, HEAD columns) for attention/combine; or the result itself (out0) where there is one part.
//
// One workgroup per row, query head and split: with few rows there would not be enough workgroups otherwise. 16 keys at
// a time, 16 threads per key; then the threads divide the values by position and column. HEAD is an override, so that
// loops have a constant length and their loads are in flight together.
override HEAD: u32 = 256u;     // values of a head, a multiple of 8
override ROTATE: bool = false; // norm and rope of the query: weight query_weight, angles in1
override PARTS: u32 = 8u;      // positions accumulated at once: a power of two, at most KEYS and THREADS / VECTORS
override THREADS: u32 = 256u;  // a power of two, at least KEYS and VECTORS; 256 where queries are rotated
override VECTORS: u32 = HEAD / CACHE_PER_VEC4; // vectors of a head
const KEYS = 16u;
override LANES: u32 = THREADS / KEYS; // threads per key
const LOWEST = -3.0e38;

@group(0) @binding(5) var<storage, read> query_weight: array<f32>;

var<workgroup> query: array<f32, HEAD>;
var<workgroup> shared_sum: array<f32, THREADS>;
var<workgroup> score: array<f32, 64>;                     // [KEYS][part of its lanes], a part at least 4
var<workgroup> column: array<f32, THREADS * CACHE_PER_VEC4>; // [PARTS][HEAD]

fn load_query(row: u32, head: u32, local: u32) {
    let q = params.in0 + row * params.in0_stride + head * HEAD;
    var sum = 0.0;
    for (var i = local; i < HEAD; i += THREADS) {
        let x = arena[q + i];
        query[i] = x;
        sum += x * x;
    }
    if (ROTATE) {
        let r = 1.0 / sqrt(workgroup_sum(0u, sum, local) / f32(HEAD) + params.eps);
        let angles = params.in1 + row * params.in1_stride;
        for (var i = local; i < HEAD / 2u; i += THREADS) { // both values of a pair are in one thread
            let a = query[i] * r * query_weight[i];
            let b = query[HEAD / 2u + i] * r * query_weight[HEAD / 2u + i];
            let c = arena[angles + i];
            let s = arena[angles + HEAD / 2u + i];
            query[i] = a * c - b * s;
            query[HEAD / 2u + i] = a * s + b * c;
        }
    }
    workgroupBarrier();
    if (is_rotated()) { rotate_query(local, HEAD); }
}

fn key_score(key: u32) -> f32 {
    let parts = LANES / summed_lanes();
    var sum = score[key * parts];
    for (var p = 1u; p < parts; p++) { sum += score[key * parts + p]; }
    return sum;
}

fn query4(i: u32) -> vec4<f32> { return vec4<f32>(query[i], query[i + 1u], query[i + 2u], query[i + 3u]); }

@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let head = group.x % params.heads; // neighboring workgroups read the same keys
    let split = group.x / params.heads;
    let row = group.y;
    if (row >= live_rows()) { return; }
    let kv_head = head / (params.heads / params.kv_heads);
    let cache = cache_of(row);
    let first = max(first_visible(row), bound_begin(row));
    let stop = max(min(last_visible(row) + 1u, bound_end(row)), first);
    // ranges of whole groups of KEYS, equal for all splits
    let range = (stop - first + KEYS * params.splits - 1u) / (KEYS * params.splits) * KEYS;
    let begin = first + split * range;
    let end = min(begin + range, stop);
    let y = params.out1 + ((row * params.heads + head) * params.parts + params.first_part + split) * (HEAD + 4u);
    if (begin >= end) { // a short context has fewer groups of KEYS than splits
        for (var i = local; i < HEAD; i += THREADS) { arena[y + 4u + i] = 0.0; }
        if (local == 0u) {
            arena[y] = LOWEST;
            arena[y + 1u] = 0.0;
        }
        return;
    }
    load_query(row, head, local);

    let key = local / LANES;
    let lane = local % LANES;
    let part = local / VECTORS;
    let vector = local % VECTORS;
    var best = LOWEST;
    var total = 0.0;
    var a = vec4<f32>(); // columns from CACHE_PER_VEC4 * vector on
    var b = vec4<f32>();
    for (var j = begin; j < end; j += KEYS) {
        let at = (cache_row(cache, min(j + key, stop - 1u)) * params.kv_heads + kv_head) * head_vectors();
        var s = 0.0;
        for (var i = 0u; i < (VECTORS + LANES - 1u) / LANES; i++) {
            let u = i * LANES + lane;
            if (u < VECTORS) {
                let k = key_vector(at, u);
                s += scale_of(k) * dot(query4(u * CACHE_PER_VEC4), low_half(k));
                if (CACHE_PER_VEC4 == 8u) { s += scale_of(k) * dot(query4(u * CACHE_PER_VEC4 + 4u), high_half(k)); }
            }
        }
        s = lanes_sum(s, local);
        if (local % summed_lanes() == 0u) { score[local / summed_lanes()] = s; }
        workgroupBarrier();
        var high_score = best;
        for (var t = 0u; t < KEYS; t++) { high_score = max(high_score, select(LOWEST, key_score(t), j + t < end)); }
        let rescale = exp(max(best - high_score, -80.0)) * select(1.0, 0.0, best == LOWEST);
        total *= rescale;
        a *= rescale;
        b *= rescale;
        best = high_score;
        if (part < PARTS) {
            for (var t = 0u; t < KEYS / PARTS; t++) {
                let own = t * PARTS + part;
                let p = select(0.0, exp(max(key_score(own) - best, -80.0)), j + own < end);
                let v = value_vector((cache_row(cache, min(j + own, stop - 1u)) * params.kv_heads + kv_head) * head_vectors(), vector);
                let by = p * scale_of(v);
                total += p;
                a += by * low_half(v);
                if (CACHE_PER_VEC4 == 8u) { b += by * high_half(v); }
            }
        }
        workgroupBarrier(); // before score is overwritten
    }
    if (vector == 0u && part < PARTS) { score[part] = total; }
    if (part < PARTS) {
        let at = part * HEAD + vector * CACHE_PER_VEC4;
        for (var i = 0u; i < 4u; i++) {
            column[at + i] = a[i];
            if (CACHE_PER_VEC4 == 8u) { column[at + 4u + i] = b[i]; }
        }
    }
    workgroupBarrier();
    let whole = params.parts == 1u;
    var all = 0.0;
    if (whole || local == 0u) {
        for (var t = 0u; t < PARTS; t++) { all += score[t]; }
    }
    let to = select(y + 4u, params.out0 + row * params.out0_stride + head * HEAD, whole);
    for (var i = local; i < HEAD; i += THREADS) {
        var sum = 0.0;
        for (var t = 0u; t < PARTS; t++) { sum += column[t * HEAD + i]; }
        arena[to + i] = select(sum, sum / all, whole);
    }
    if (local == 0u && !whole) {
        arena[y] = best;
        arena[y + 1u] = all;
    }
}
