// uses: <sum> params.product common/pass common/fold common/arena4 type.aligned
// linear_float: y = W x for up to 8 rows, f32 activations, weights that are floats (F32, F16, BF16).
// x: [rows][K], K a multiple of 32; W: [outputs][K], outputs a multiple of 4.
//
// LANES threads compute an output; neighboring threads read neighboring vectors of weights. The activations are in
// workgroup memory, CHUNK at a time, since all outputs of the workgroup need them.
override LANES: u32 = 32u; // 32 or 64
override MAX_N: u32 = 1u;  // rows of the bucket, at most 8
override K: u32 = 256u;    // values of an input row; an override, so that loops have a constant length
const CHUNK = 2048u;
const THREADS = 256u;

var<workgroup> shared_sum: array<f32, 256>;
var<workgroup> out_sum: array<f32, 64>; // [output][part of its lanes], a part at least 4
var<workgroup> x: array<vec4<f32>, CHUNK / 4u>;

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>) {
    let outputs = 256u / LANES; // per workgroup, a multiple of 4
    let parts = LANES / summed_lanes();
    let first = folded(group, groups) * outputs;
    let lane = local % LANES;
    let at = min(first + local / LANES, params.row_count - 1u) * params.row_bytes;
    for (var r = 0u; r < min(live_rows(), MAX_N); r++) {
        var sum = 0.0;
        for (var k0 = 0u; k0 < K; k0 += CHUNK) {
            let n = min(CHUNK, K - k0);
            for (var i = local; i < n / 4u; i += 256u) { x[i] = arena4[(params.in0 + r * params.in0_stride + k0) / 4u + i]; }
            workgroupBarrier();
            for (var u = lane; u < n / 8u; u += LANES) {
                unpack8(at, k0 / 8u + u);
                sum += dot(wa, x[2u * u]) + dot(wb, x[2u * u + 1u]);
            }
            workgroupBarrier(); // before the chunk is replaced
        }
        sum = lanes_sum(sum, local);
        if (local % summed_lanes() == 0u) { out_sum[local / summed_lanes()] = sum; }
        workgroupBarrier();
        // four outputs at a time: only whole vectors are stored
        let four = local * 4u;
        if (four < outputs && first + four < params.row_count) {
            var y = vec4<f32>();
            for (var o = 0u; o < 4u; o++) {
                for (var p = 0u; p < parts; p++) { y[o] += out_sum[(four + o) * parts + p]; }
            }
            arena4[(params.out0 + r * params.out0_stride + params.first_row + first + four) / 4u] = y;
        }
        workgroupBarrier();
    }
}
