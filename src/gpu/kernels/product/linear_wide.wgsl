// uses: params.product common/pass common/fold common/arena4 type.wide
// linear_wide: y = W x for up to 8 rows, f32 activations, K-quantized weights. Decoding where int8 activations are off.
// x: [rows][k], W: [outputs][k], outputs a multiple of 4.
//
// LANES threads compute four outputs: eight neighboring threads read the eight vectors of a block, one each, and an
// activation that was loaded serves four outputs.
override LANES: u32 = 16u; // 8 threads per block of 256 weights
override MAX_N: u32 = 1u;  // rows of the bucket, at most 8
const THREADS = 64u;

var<workgroup> partial: array<vec4<f32>, 64>;

fn fetch(x: u32, v: u32) {
    let l = x + offset_low(v) / 4u;
    let h = x + offset_high(v) / 4u;
    x0 = arena4[l];
    x1 = arena4[l + 1u];
    x2 = arena4[l + 2u];
    x3 = arena4[l + 3u];
    x4 = arena4[h];
    x5 = arena4[h + 1u];
    x6 = arena4[h + 2u];
    x7 = arena4[h + 3u];
    let one = vec4<f32>(1.0);
    sum_low = dot(x0 + x1 + x2 + x3, one);
    sum_high = dot(x4 + x5 + x6 + x7, one);
}

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>) {
    let n = live_rows();
    let first = (folded(group, groups) * (THREADS / LANES) + local / LANES) * 4u;
    let lane = local % LANES;
    let v = lane & 7u;
    let blocks = params.k / 256u;
    let row = blocks * BLOCK; // vectors of a weight row
    let w = min(first, params.row_count - 4u) * row;
    for (var r = 0u; r < MAX_N; r++) {
        if (r >= n) { break; }
        let x = (params.in0 + r * params.in0_stride) / 4u;
        var sum = vec4<f32>();
        for (var b = lane / 8u; b < blocks; b += LANES / 8u) {
            fetch(x + b * 64u, v);
            let at = w + b * BLOCK;
            sum += vec4<f32>(dot32(at, v), dot32(at + row, v), dot32(at + 2u * row, v), dot32(at + 3u * row, v));
        }
        partial[local] = sum;
        workgroupBarrier();
        for (var half = LANES / 2u; half > 0u; half >>= 1u) {
            if (lane < half) { partial[local] += partial[local + half]; }
            workgroupBarrier();
        }
        if (lane == 0u && first < params.row_count) {
            arena4[(params.out0 + r * params.out0_stride + params.first_row + first) / 4u] = partial[local];
        }
        workgroupBarrier();
    }
}
