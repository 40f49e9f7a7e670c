// uses: common/pass product/gated_input common/int8 common/f16_rows tower/pack_f16
// to_tile16: rows of activations as f16 (common/f16_rows), for product/linear_tile16.
// in0: [rows][k] f32 -> values at vector out0; at vector out1 the factor of each row, f32
// Where adapters read what GATE computes, it is also stored as f32 (`kept`).
//
// A workgroup converts a row; a thread has up to six times four values, in single variables: an array would lie in
// memory.
override THREADS: u32 = 256u;
override EACH: u32 = 1u; // times four values per thread

@group(0) @binding(3) var<storage, read_write> side: array<vec2<u32>>;

var<workgroup> largest: array<u32, THREADS>;

fn value4(row: u32, four: u32) -> vec4<f32> {
    if (four * 4u >= params.k) { return vec4<f32>(); }
    let x = input4(row, 0u, four);
    keep4(row, four, x);
    return x;
}

fn store4(row: u32, four: u32, x: vec4<f32>) {
    if (four * 4u < params.k) { side[params.out0 * 2u + tile16_at(row, four, params.k)] = pack_f16(x); }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y;
    if (row >= live_rows()) { return; }
    var x0 = value4(row, local);
    var x1 = vec4<f32>();
    var x2 = vec4<f32>();
    var x3 = vec4<f32>();
    var x4 = vec4<f32>();
    var x5 = vec4<f32>();
    if (EACH > 1u) { x1 = value4(row, local + THREADS); }
    if (EACH > 2u) { x2 = value4(row, local + 2u * THREADS); }
    if (EACH > 3u) { x3 = value4(row, local + 3u * THREADS); }
    if (EACH > 4u) { x4 = value4(row, local + 4u * THREADS); }
    if (EACH > 5u) { x5 = value4(row, local + 5u * THREADS); }
    largest[local] = max(max(max(max_bits(x0), max_bits(x1)), max(max_bits(x2), max_bits(x3))), max(max_bits(x4), max_bits(x5)));
    workgroupBarrier();
    for (var half = THREADS / 2u; half > 0u; half >>= 1u) {
        if (local < half) { largest[local] = max(largest[local], largest[local + half]); }
        workgroupBarrier();
    }
    let undo = undo_bits(largest[0]);
    let scale = scale_of(undo);
    store4(row, local, x0 * scale);
    if (EACH > 1u) { store4(row, local + THREADS, x1 * scale); }
    if (EACH > 2u) { store4(row, local + 2u * THREADS, x2 * scale); }
    if (EACH > 3u) { store4(row, local + 3u * THREADS, x3 * scale); }
    if (EACH > 4u) { store4(row, local + 4u * THREADS, x4 * scale); }
    if (EACH > 5u) { store4(row, local + 5u * THREADS, x5 * scale); }
    if (local == 0u) { side[params.out1 * 2u + row / 2u][row % 2u] = undo; }
}
