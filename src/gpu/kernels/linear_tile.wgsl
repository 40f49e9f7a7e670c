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
    let tx = local % 16u; // outputs tx, tx + 16, ...
    let ty = local / 16u; // rows ty, ty + 16, ...
    let mine = local % 64u; // weight row and activation row this thread fetches eight values of
    let part = local / 64u;
    let has_w = output0 + mine < step.row_count;
    let has_x = row0 + mine < n;
    let w_row = (output0 + mine) * step.row_bytes;
    let x_row = step.in0 + (row0 + mine) * step.in0_stride;
    var s0 = vec4<f32>();
    var s1 = vec4<f32>();
    var s2 = vec4<f32>();
    var s3 = vec4<f32>();
    for (var k0 = 0u; k0 < step.k; k0 += 32u) {
        let k = k0 + part * 8u;
        wa = vec4<f32>();
        wb = vec4<f32>();
        if (has_w && k < step.k) { eight(w_row, k / 8u); }
        for (var i = 0u; i < 8u; i++) {
            let inside = k + i < step.k;
            w_tile[(part * 8u + i) * 64u + mine] = select(0.0, select(wb, wa, i < 4u)[i & 3u], inside);
            var value = 0.0;
            if (has_x && inside) { value = arena[x_row + k + i]; }
            x_tile[(part * 8u + i) * 64u + mine] = value;
        }
        workgroupBarrier();
        for (var i = 0u; i < 32u; i++) {
            let at = i * 64u;
            let w = vec4<f32>(w_tile[at + tx], w_tile[at + tx + 16u], w_tile[at + tx + 32u], w_tile[at + tx + 48u]);
            s0 += x_tile[at + ty] * w;
            s1 += x_tile[at + ty + 16u] * w;
            s2 += x_tile[at + ty + 32u] * w;
            s3 += x_tile[at + ty + 48u] * w;
        }
        workgroupBarrier();
    }
    for (var c = 0u; c < 4u; c++) {
        let output = output0 + tx + 16u * c;
        if (output < step.row_count) {
            let y = step.out0 + step.first_row + output;
            let row = row0 + ty;
            if (row < n) { arena[y + row * step.out0_stride] = s0[c]; }
            if (row + 16u < n) { arena[y + (row + 16u) * step.out0_stride] = s1[c]; }
            if (row + 32u < n) { arena[y + (row + 32u) * step.out0_stride] = s2[c]; }
            if (row + 48u < n) { arena[y + (row + 48u) * step.out0_stride] = s3[c]; }
        }
    }
}
