// uses: common/pass product/gated_input common/int8
// quantize: rows of activations as int8 (common/int8), for product/linear_tile8.
// in0: [rows][inputs][k] f32: a row may be several inputs of k values (slots of experts); each is padded to steps of 64
// values and becomes a row of its own:
// Where adapters read what GATE computes, it is also stored as f32 (`kept`).
//   integers at vector out0: [row][step][4] of 16;  scales at vector out1: [row][step] of (d, sum, d, sum)
//
// A thread takes four values, eight threads a group of 32.
@group(0) @binding(3) var<storage, read_write> side: array<u32>;

var<workgroup> largest: array<u32, 256>;
var<workgroup> integer_sum: array<i32, 256>;

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y;
    if (row >= live_rows()) { return; }
    let steps = (params.k + 63u) / 64u;
    let i = group.x * 256u + local;
    let input = i / (steps * 16u);
    let four = i % (steps * 16u);
    let here = input < params.inputs;
    var x = vec4<f32>();
    if (here && four * 4u < params.k) {
        x = input4(row, input, four);
        keep4(row, four, x);
    }
    largest[local] = max_bits(x);
    workgroupBarrier();
    let first = local & ~7u;
    var highest = 0u;
    for (var t = 0u; t < 8u; t++) { highest = max(highest, largest[first + t]); }
    let q = quantize4(x, highest);
    integer_sum[local] = q.x + q.y + q.z + q.w;
    workgroupBarrier();
    if (!here) { return; }
    let to = row * params.inputs + input;
    side[params.out0 * 4u + to * steps * 16u + four] = pack_bytes(q);
    if ((local & 7u) == 0u) {
        var sum = 0;
        for (var t = 0u; t < 8u; t++) { sum += integer_sum[first + t]; }
        let both = scale_and_sum(highest, sum);
        let at = params.out1 * 4u + to * steps * 4u + four / 8u * 2u;
        side[at] = both.x;
        side[at + 1u] = both.y;
    }
}
