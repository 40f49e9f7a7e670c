// uses: params.product common/pass common/fold common/arena4 type.unpack
// linear_row: y = W x for up to 8 rows, f32 activations, any block type. Decoding where no faster kernel has the type.
// x: [rows][k], k a multiple of 32; W: [outputs][k], outputs a multiple of 4.
//
// LANES threads compute two outputs; each takes every LANES-th group of 32 weights of both and multiplies them with all
// rows. A weight is read once; activations are loaded as vec4 and serve both outputs; the four parts of a group share
// its scales.
override LANES: u32 = 32u;
override MAX_N: u32 = 1u; // rows of the bucket, at most 8
const THREADS = 128u;

var<workgroup> partial: array<f32, 256>; // [output of the workgroup][lane]

fn part(at0: u32, at1: u32, u: u32, x: u32) -> vec2<f32> {
    let xa = arena4[x];
    let xb = arena4[x + 1u];
    unpack8(at0, u);
    let s = dot(wa, xa) + dot(wb, xb);
    unpack8(at1, u);
    return vec2<f32>(s, dot(wa, xa) + dot(wb, xb));
}

@compute @workgroup_size(128)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>) {
    let n = live_rows();
    let outputs = 2u * THREADS / LANES; // per workgroup, a multiple of 2
    let first = folded(group, groups) * outputs + local / LANES * 2u;
    let lane = local % LANES;
    let at0 = min(first, params.row_count - 2u) * params.row_bytes;
    let at1 = at0 + params.row_bytes;
    for (var r = 0u; r < MAX_N; r++) {
        if (r >= n) { break; }
        let x = (params.in0 + r * params.in0_stride) / 4u;
        var sum = vec2<f32>();
        for (var g = lane; g * 32u < params.k; g += LANES) {
            sum += part(at0, at1, 4u * g, x + 8u * g);
            sum += part(at0, at1, 4u * g + 1u, x + 8u * g + 2u);
            sum += part(at0, at1, 4u * g + 2u, x + 8u * g + 4u);
            sum += part(at0, at1, 4u * g + 3u, x + 8u * g + 6u);
        }
        let mine = local / LANES * 2u * LANES + lane;
        partial[mine] = sum.x;
        partial[mine + LANES] = sum.y;
        workgroupBarrier();
        for (var half = LANES / 2u; half > 0u; half >>= 1u) {
            if (lane < half) {
                partial[mine] += partial[mine + half];
                partial[mine + LANES] += partial[mine + LANES + half];
            }
            workgroupBarrier();
        }
        // four outputs at a time: only whole vectors are stored
        let four = folded(group, groups) * outputs + local * 4u;
        if (local * 4u < max(outputs, 4u) && four < params.row_count) {
            let p = local * 4u * LANES;
            let y = (params.out0 + r * params.out0_stride + params.first_row + four) / 4u;
            arena4[y] = vec4<f32>(partial[p], partial[p + LANES], partial[p + 2u * LANES], partial[p + 3u * LANES]);
        }
        workgroupBarrier();
    }
}
