// linear for many rows: a workgroup makes a tile of 64 rows by 64 outputs, 32 values of k at a time
// through workgroup memory; a thread makes 4 by 4 of them.
var<workgroup> x_tile: array<f32, 2048>; // [32 k][64 rows]
var<workgroup> w_tile: array<f32, 2048>; // [32 k][64 outputs]

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let n = live_rows();
    let row0 = group.y * 64u;
    let output0 = group.x * 64u;
    if (row0 >= n) { return; }
    let tx = local % 16u; // outputs 4 tx ..
    let ty = local / 16u; // rows 4 ty ..
    var sum: array<vec4<f32>, 4>;
    for (var g = 0u; g * 32u < step.k; g++) {
        let count = min(32u, step.k - g * 32u);
        // 64 threads unpack a group of one weight row each, the others fetch activations
        if (local < 64u) {
            if (output0 + local < step.row_count) {
                unpack((output0 + local) * step.row_bytes, g);
                for (var i = 0u; i < 32u; i++) { w_tile[i * 64u + local] = select(0.0, v[i], i < count); }
            } else {
                for (var i = 0u; i < 32u; i++) { w_tile[i * 64u + local] = 0.0; }
            }
        } else {
            for (var t = local - 64u; t < 2048u; t += 192u) {
                let r = t / 32u;
                let i = t % 32u;
                var value = 0.0;
                if (row0 + r < n && i < count) { value = arena[step.in0 + (row0 + r) * step.in0_stride + g * 32u + i]; }
                x_tile[i * 64u + r] = value;
            }
        }
        workgroupBarrier();
        for (var i = 0u; i < 32u; i++) {
            let w = vec4<f32>(w_tile[i * 64u + 4u * tx], w_tile[i * 64u + 4u * tx + 1u],
                              w_tile[i * 64u + 4u * tx + 2u], w_tile[i * 64u + 4u * tx + 3u]);
            for (var r = 0u; r < 4u; r++) { sum[r] += x_tile[i * 64u + 4u * ty + r] * w; }
        }
        workgroupBarrier();
    }
    for (var r = 0u; r < 4u; r++) {
        let row = row0 + 4u * ty + r;
        if (row < n) {
            for (var c = 0u; c < 4u; c++) {
                let output = output0 + 4u * tx + c;
                if (output < step.row_count) {
                    arena[step.out0 + row * step.out0_stride + step.first_row + output] = sum[r][c];
                }
            }
        }
    }
}
