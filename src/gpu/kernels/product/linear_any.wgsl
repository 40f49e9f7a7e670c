// uses: params.product common/pass common/fold common/arena type.unpack product/dot8
// linear_any: y = W x for up to 8 rows of any shape; product/linear_row is the fast form for even shapes.
// x: [rows][k], W: [outputs][k].
//
// LANES threads compute two outputs; each takes every LANES-th eight of their weights and multiplies them with all
// rows.
override LANES: u32 = 32u;
override MAX_N: u32 = 1u; // rows of the bucket, at most 8
const THREADS = 128u;
const PAIR = 2u;

var<workgroup> partial: array<f32, 256>; // [PAIR][THREADS]

@compute @workgroup_size(128)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>) {
    let n = live_rows();
    let first = (folded(group, groups) * (THREADS / LANES) + local / LANES) * PAIR; // in this binding
    let lane = local % LANES;
    // a last odd output is computed twice and stored once
    let second = min(first + 1u, params.row_count - 1u);
    var sum0: array<f32, 8>;
    var sum1: array<f32, 8>;
    if (first < params.row_count) {
        for (var u = lane; u * 8u < params.k; u += LANES) {
            unpack8(first * params.row_bytes, u);
            let a0 = wa;
            let b0 = wb;
            unpack8(second * params.row_bytes, u);
            let left = params.k - u * 8u;
            for (var r = 0u; r < MAX_N; r++) {
                if (r < n) {
                    let x = params.in0 + r * params.in0_stride + u * 8u;
                    if (left >= 8u) {
                        let xa = vec4<f32>(arena[x], arena[x + 1u], arena[x + 2u], arena[x + 3u]);
                        let xb = vec4<f32>(arena[x + 4u], arena[x + 5u], arena[x + 6u], arena[x + 7u]);
                        sum0[r] += dot(a0, xa) + dot(b0, xb);
                        sum1[r] += dot(wa, xa) + dot(wb, xb);
                    } else {
                        sum1[r] += dot8(x, left);
                        let a1 = wa;
                        let b1 = wb;
                        wa = a0;
                        wb = b0;
                        sum0[r] += dot8(x, left);
                        wa = a1;
                        wb = b1;
                    }
                }
            }
        }
    }
    for (var r = 0u; r < MAX_N; r++) {
        partial[local] = sum0[r];
        partial[THREADS + local] = sum1[r];
        workgroupBarrier();
        for (var half = LANES / 2u; half > 0u; half >>= 1u) {
            if (lane < half) {
                partial[local] += partial[local + half];
                partial[THREADS + local] += partial[THREADS + local + half];
            }
            workgroupBarrier();
        }
        if (first < params.row_count && lane == 0u && r < n) {
            let y = params.out0 + r * params.out0_stride + params.first_row;
            arena[y + first] = partial[local];
            if (first + 1u < params.row_count) { arena[y + first + 1u] = partial[THREADS + local]; }
        }
        workgroupBarrier();
    }
}
