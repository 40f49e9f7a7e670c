// linear for few rows: LANES threads share an output, each takes every LANES-th group of 32 weights
// and multiplies it with all rows. The weights are read once whatever the number of rows.
override LANES: u32 = 16u;
const THREADS = 64u;
const MAX_N = 8u;

var<workgroup> partial: array<f32, 512>; // [THREADS][MAX_N]

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>) {
    let n = min(live_rows(), MAX_N);
    let output = folded(group, groups) * (THREADS / LANES) + local / LANES; // of this binding
    let lane = local % LANES;
    var sum: array<f32, 8>;
    if (output < step.row_count) {
        for (var g = lane; g * 32u < step.k; g += LANES) {
            unpack(output * step.row_bytes, g);
            let count = min(32u, step.k - g * 32u);
            for (var r = 0u; r < n; r++) {
                let x = step.in0 + r * step.in0_stride + g * 32u;
                var s = 0.0;
                for (var i = 0u; i < count; i++) { s += v[i] * arena[x + i]; }
                sum[r] += s;
            }
        }
    }
    for (var r = 0u; r < MAX_N; r++) { partial[local * MAX_N + r] = sum[r]; }
    workgroupBarrier();
    // lane r of an output adds up row r
    if (output < step.row_count && lane < n) {
        var total = 0.0;
        for (var l = 0u; l < LANES; l++) { total += partial[(local - lane + l) * MAX_N + lane]; }
        arena[step.out0 + lane * step.out0_stride + step.first_row + output] = total;
    }
}
