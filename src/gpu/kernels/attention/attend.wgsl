// uses: <head> params.attention attention/visible attention/cache attention/rotate_query common/arena
// attend: y = softmax(q K^T) V for a head of any size up to 1024; attend_split and attend_tile are the fast forms.
// q: [rows][heads][width] (in0); K, V: the cache, [position][kv_heads][width]; y: [rows][heads][width] (out0), or
// partial results (max, sum, two unused, columns) at out1 where the cache needs several bindings.
//
// One workgroup per row and query head. 16 keys at a time: 16 threads score one together, reading neighboring words.
// Maximum and sum are kept while walking; each thread accumulates its own columns of V.
const KEYS = 16u;
const LOWEST = -3.0e38;

@group(0) @binding(3) var<storage, read> keys: array<u32>;
@group(0) @binding(4) var<storage, read> values: array<u32>;

var<workgroup> query: array<f32, 1024>;
var<workgroup> score: array<f32, 256>; // [KEYS][16 threads]; a key's sum ends in [key * 16]

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let head = group.x;
    let row = group.y;
    if (row >= live_rows()) { return; }
    let d = params.width;
    let kv_head = head / (params.heads / params.kv_heads);
    let cache = cache_of(row);
    let begin = max(first_visible(row), bound_begin(row));
    let end = min(last_visible(row) + 1u, bound_end(row));
    let words = units(d);
    let row_words = params.kv_heads * head_words(d);
    let head_word = kv_head * head_words(d);
    let q = params.in0 + row * params.in0_stride + head * d;
    for (var i = local; i < d; i += 256u) { query[i] = arena[q + i]; }
    workgroupBarrier();
    if (is_rotated()) { rotate_query(local, d); }

    let key = local / 16u;
    let lane = local % 16u;
    var best = LOWEST;
    var total = 0.0;
    var out0 = 0.0; // columns local, local + 256, ...
    var out1 = 0.0;
    var out2 = 0.0;
    var out3 = 0.0;
    for (var j = begin; j < end; j += KEYS) {
        let count = min(KEYS, end - j);
        let at = cache_row(cache, min(j + key, end - 1u)) * row_words + head_word;
        var s = 0.0;
        for (var i = lane; i < words; i += 16u) { s += key_part(at, i, d); }
        score[local] = s;
        workgroupBarrier();
        for (var half = 8u; half > 0u; half >>= 1u) {
            if (lane < half) { score[local] += score[local + half]; }
            workgroupBarrier();
        }
        var high = best;
        for (var t = 0u; t < count; t++) { high = max(high, score[t * 16u]); }
        let rescale = exp(max(best - high, -80.0)) * select(1.0, 0.0, best == LOWEST);
        total *= rescale;
        out0 *= rescale;
        out1 *= rescale;
        out2 *= rescale;
        out3 *= rescale;
        best = high;
        for (var t = 0u; t < count; t++) {
            let p = exp(max(score[t * 16u] - best, -80.0));
            total += p;
            let v = cache_row(cache, j + t) * row_words + head_word;
            if (local < d) { out0 += p * value_at(v, local, d); }
            if (local + 256u < d) { out1 += p * value_at(v, local + 256u, d); }
            if (local + 512u < d) { out2 += p * value_at(v, local + 512u, d); }
            if (local + 768u < d) { out3 += p * value_at(v, local + 768u, d); }
        }
        workgroupBarrier(); // before score is overwritten
    }
    var scale = 1.0;
    var y = params.out1 + ((row * params.heads + head) * params.parts + params.first_part) * (d + 4u) + 4u;
    if (params.parts == 1u) {
        scale = 1.0 / total;
        y = params.out0 + row * params.out0_stride + head * d;
    } else if (local == 0u) {
        arena[y - 4u] = best;
        arena[y - 3u] = total;
    }
    if (local < d) { arena[y + local] = out0 * scale; }
    if (local + 256u < d) { arena[y + local + 256u] = out1 * scale; }
    if (local + 512u < d) { arena[y + local + 512u] = out2 * scale; }
    if (local + 768u < d) { arena[y + local + 768u] = out3 * scale; }
}
