// uses: params.attention common/pass attention/cache common/arena
// kv_write: a row's keys (in0) and values (in1) -> the cache, [position][kv_heads * head], as f32 or as pairs of f16 in
// a word.
// One thread per word.
override F16: bool = true;

@group(0) @binding(3) var<storage, read_write> keys: array<u32>;
@group(0) @binding(4) var<storage, read_write> values: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) thread: vec3<u32>) {
    let row = thread.y;
    let words = select(params.cols, params.cols / 2u, F16);
    let i = thread.x;
    if (row >= live_rows() || i >= words) { return; }
    let position = position_of(row);
    if (position < bound_begin(row) || position >= bound_end(row)) { return; } // in another binding
    let offset = cache_row(cache_of(row), position) * words + i;
    let k = params.in0 + row * params.in0_stride;
    let v = params.in1 + row * params.in1_stride;
    if (F16) {
        keys[offset] = pack2x16float(vec2<f32>(arena[k + 2u * i], arena[k + 2u * i + 1u]));
        values[offset] = pack2x16float(vec2<f32>(arena[v + 2u * i], arena[v + 2u * i + 1u]));
    } else {
        keys[offset] = bitcast<u32>(arena[k + i]);
        values[offset] = bitcast<u32>(arena[v + i]);
    }
}
