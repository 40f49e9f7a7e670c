// uses: params.attention common/pass attention/cache common/arena attention/store_blocks
// kv_write_blocks: a row's keys (in0) and values (in1) -> the cache, [position][kv_heads][head], in blocks.
// One workgroup per row and KV head.
@group(0) @binding(3) var<storage, read_write> keys: array<u32>;
@group(0) @binding(4) var<storage, read_write> values: array<u32>;

var<workgroup> key: array<f32, 1024>;
var<workgroup> value: array<f32, 1024>;

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y;
    if (row >= live_rows()) { return; }
    let position = position_of(row);
    if (position < bound_begin(row) || position >= bound_end(row)) { return; } // in another binding
    let d = params.width;
    for (var i = local; i < d; i += 256u) {
        key[i] = arena[params.in0 + row * params.in0_stride + group.x * d + i];
        value[i] = arena[params.in1 + row * params.in1_stride + group.x * d + i];
    }
    workgroupBarrier();
    store_head(local, cache_row(cache_of(row), position) * params.kv_heads + group.x, d, 1.0);
}
