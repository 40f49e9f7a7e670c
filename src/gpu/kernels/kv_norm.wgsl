// rms_norm and rope of a row's keys (in0, angles in2), rms_norm of its values (in1), both into the cache: one
// workgroup per row and KV head. Workgroups behind those do the same with the row's queries (in3), into out0.
override F16: bool = true;
override KEY_SUMS: u32 = 0u; // splits that keys, values and queries are the sums of, 0: none
override VALUE_SUMS: u32 = 0u;
override QUERY_SUMS: u32 = 0u;

@group(0) @binding(3) var<storage, read_write> keys: array<u32>;
@group(0) @binding(4) var<storage, read_write> values: array<u32>;
@group(0) @binding(5) var<storage, read> key_weight: array<f32>;
@group(0) @binding(6) var<storage, read> query_weight: array<f32>;

var<workgroup> key: array<f32, 1024>; // the head's own, then turned
var<workgroup> value: array<f32, 1024>;
var<workgroup> sums: array<vec2<f32>, 256>;

fn weight(of_query: bool, i: u32) -> f32 {
    if (of_query) { return query_weight[i]; }
    return key_weight[i];
}

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y;
    if (row >= live_rows()) { return; }
    let position = position_of(row);
    let of_query = group.x >= step.kv_heads;
    if (of_query && step.first_row > 0u) { return; } // done with the first binding
    if (!of_query && (position < step.first_row || position - step.first_row >= step.row_count)) { return; } // in another binding
    let d = step.width;
    let head = group.x - step.kv_heads; // of queries
    let k = step.in0 + row * step.in0_stride + group.x * d;
    let v = step.in1 + row * step.in1_stride + group.x * d;
    var sum = vec2<f32>();
    for (var i = local; i < d; i += 256u) {
        var pair = vec2<f32>();
        if (of_query) {
            pair.x = added(step.in3 + row * step.in3_stride + head * d + i, step.in3_stride * step.sum_rows, QUERY_SUMS);
        } else {
            pair = vec2<f32>(added(k + i, step.in0_stride * step.sum_rows, KEY_SUMS),
                             added(v + i, step.in1_stride * step.sum_rows, VALUE_SUMS));
        }
        key[i] = pair.x;
        value[i] = pair.y;
        sum += pair * pair;
    }
    sums[local] = sum;
    workgroupBarrier();
    for (var half_way = 128u; half_way > 0u; half_way >>= 1u) {
        if (local < half_way) { sums[local] += sums[local + half_way]; }
        workgroupBarrier();
    }
    let r = vec2<f32>(1.0) / sqrt(sums[0] / f32(d) + step.eps);
    let pairs = d / 2u;
    let angles = step.in2 + row * step.in2_stride;
    for (var i = local; i < pairs; i += 256u) { // a pair belongs to one thread
        let a = key[i] * r.x * weight(of_query, i);
        let b = key[pairs + i] * r.x * weight(of_query, pairs + i);
        let c = arena[angles + i];
        let s = arena[angles + pairs + i];
        key[i] = a * c - b * s;
        key[pairs + i] = a * s + b * c;
    }
    workgroupBarrier();
    if (of_query) {
        for (var i = local; i < d; i += 256u) { arena[step.out0 + row * step.out0_stride + head * d + i] = key[i]; }
        return;
    }
    let words = select(d, pairs, F16);
    let place = (cache_row(position) * step.kv_heads + group.x) * words;
    for (var i = local; i < words; i += 256u) {
        if (F16) {
            keys[place + i] = pack2x16float(vec2<f32>(key[2u * i], key[2u * i + 1u]));
            values[place + i] = pack2x16float(vec2<f32>(value[2u * i], value[2u * i + 1u]) * r.y);
        } else {
            keys[place + i] = bitcast<u32>(key[i]);
            values[place + i] = bitcast<u32>(value[i] * r.y);
        }
    }
}
