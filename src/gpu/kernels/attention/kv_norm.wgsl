// uses: params.attention common/pass attention/cache common/arena common/split_input <store>
// kv_norm: rope(rms_norm(k) * key_weight) and rms_norm(v) -> the cache; rope(rms_norm(q) * query_weight) -> out0.
// in0: keys, in1: values, [rows][kv_heads][width]; in2: angles; query: queries, [rows][heads][width].
//
// One workgroup per row and KV head; the workgroups after those do the queries' heads.
override KEY_SUMS: u32 = 0u; // split-K partial sums of keys, values and queries; 0: not split
override VALUE_SUMS: u32 = 0u;
override QUERY_SUMS: u32 = 0u;
override THREADS: u32 = 256u; // a power of two; 256 where the cache is in blocks

@group(0) @binding(3) var<storage, read_write> keys: array<u32>;
@group(0) @binding(4) var<storage, read_write> values: array<u32>;
@group(0) @binding(5) var<storage, read> key_weight: array<f32>;
@group(0) @binding(6) var<storage, read> query_weight: array<f32>;

var<workgroup> key: array<f32, 1024>; // the head, then rotated
var<workgroup> value: array<f32, 1024>;
var<workgroup> sums: array<vec2<f32>, THREADS>;

fn weight(of_query: bool, i: u32) -> f32 {
    if (of_query) { return query_weight[i]; }
    return key_weight[i];
}

@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y;
    if (row >= live_rows()) { return; }
    let position = position_of(row);
    let of_query = group.x >= params.kv_heads;
    if (of_query && params.first_row > 0u) { return; } // done with the first binding
    if (!of_query && (position < bound_begin(row) || position >= bound_end(row))) { return; } // in another binding
    let d = params.width;
    let head = group.x - params.kv_heads; // of the queries
    let k = params.in0 + row * params.in0_stride + group.x * d;
    let v = params.in1 + row * params.in1_stride + group.x * d;
    var sum = vec2<f32>();
    for (var i = local; i < d; i += THREADS) {
        var pair = vec2<f32>();
        if (of_query) {
            pair.x = sum_splits(params.query + row * params.query_stride + head * d + i, params.query_stride * params.split_rows, QUERY_SUMS);
        } else {
            pair = vec2<f32>(sum_splits(k + i, params.in0_stride * params.split_rows, KEY_SUMS),
                             sum_splits(v + i, params.in1_stride * params.split_rows, VALUE_SUMS));
        }
        key[i] = pair.x;
        value[i] = pair.y;
        sum += pair * pair;
    }
    sums[local] = sum;
    workgroupBarrier();
    for (var half = THREADS / 2u; half > 0u; half >>= 1u) {
        if (local < half) { sums[local] += sums[local + half]; }
        workgroupBarrier();
    }
    let r = vec2<f32>(1.0) / sqrt(sums[0] / f32(d) + params.eps);
    let pairs = d / 2u;
    let angles = params.in2 + row * params.in2_stride;
    for (var i = local; i < pairs; i += THREADS) { // both values of a pair are in one thread
        let a = key[i] * r.x * weight(of_query, i);
        let b = key[pairs + i] * r.x * weight(of_query, pairs + i);
        let c = arena[angles + i];
        let s = arena[angles + pairs + i];
        key[i] = a * c - b * s;
        key[pairs + i] = a * s + b * c;
    }
    workgroupBarrier();
    if (of_query) {
        for (var i = local; i < d; i += THREADS) { arena[params.out0 + row * params.out0_stride + head * d + i] = key[i]; }
        return;
    }
    store_head(local, cache_row(cache_of(row), position) * params.kv_heads + group.x, d, r.y);
}
