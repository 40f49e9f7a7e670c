// uses: common/matrices params.product common/pass common/arena
// linear_matrix: Y = X W^T for more than 64 rows, f16 weights, on subgroup matrices. Encoders on devices that have
// them.
// X: [rows][k] in f16 slabs of the side buffer (product/to_f16); W: [outputs][k]; sums are f32.
//
// A workgroup computes 128 rows by 64 outputs, each of its four subgroups 64 by 32. Two slabs of k at a time go through
// workgroup memory; the next two are loaded before these are multiplied.
@group(0) @binding(3) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> side: array<vec4<u32>>;

var<workgroup> x_tile: array<array<f16, SLAB>, 8>; // [32 rows][slab of k]
var<workgroup> w_tile: array<array<f16, SLAB>, 4>; // [32 outputs][slab of k]
var<workgroup> corner: array<array<f32, 256>, 4>;  // per subgroup: a matrix at the edge

// What a thread loads: its row of two slabs, its output of one.
var<private> x0: vec4<u32>;
var<private> x1: vec4<u32>;
var<private> x2: vec4<u32>;
var<private> x3: vec4<u32>;
var<private> w0: vec4<u32>;
var<private> w1: vec4<u32>;

fn fetch(x: u32, w: u32, k: u32, part: u32) {
    let last = params.k / 16u - 1u;
    let then = min(k + 1u, last);
    x0 = side[x + 64u * k];
    x1 = side[x + 64u * k + 32u];
    x2 = side[x + 64u * then];
    x3 = side[x + 64u * then + 32u];
    let at = w + 2u * min(k + part, last);
    w0 = weights[at];
    w1 = weights[at + 1u];
}

fn offset_of(row: u32, output: u32) -> u32 { return params.out0 + row * params.out0_stride + params.first_row + output; }

// Stores a matrix that may reach past the last row or output.
fn store_some(m: Sums, row: u32, output: u32, s: u32, lane: u32) {
    workgroupBarrier();
    subgroupMatrixStore(&corner[s], 0u, m, false, 16u);
    workgroupBarrier();
    let y = row + lane / 2u;
    let first = output + 8u * (lane % 2u);
    for (var i = 0u; i < 8u; i++) {
        if (y < live_rows() && first + i < params.row_count) { arena[offset_of(y, first + i)] = corner[s][8u * lane + i]; }
    }
}

@compute @workgroup_size(32, 4)
fn main(@builtin(local_invocation_id) id: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {
    let n = live_rows();
    let row0 = group.y * 128u;
    if (row0 >= n) { return; }
    let output0 = group.x * 64u;
    let slabs = params.k / 16u;
    let s = id.y;
    let x = params.in0 + (row0 / 32u + s) * slabs * 64u + id.x;
    let w = min(output0 + (s / 2u) * 32u + id.x, params.row_count - 1u) * (params.row_bytes / 16u);
    let down = s / 2u * 4u; // first slabs of this subgroup's rows and outputs
    let over = s % 2u * 2u;
    var c00 = Sums();
    var c01 = Sums();
    var c10 = Sums();
    var c11 = Sums();
    var c20 = Sums();
    var c21 = Sums();
    var c30 = Sums();
    var c31 = Sums();
    fetch(x, w, 0u, s % 2u);
    for (var k = 0u; k < slabs; k += 2u) {
        if (k + 1u == slabs) { // the last slab is alone; testing its data any earlier would wait for the load
            x2 = vec4<u32>();
            x3 = vec4<u32>();
        }
        // Written out here: in a function, with indices unknown to the compiler, every store is checked and issued alone.
        let a0 = f16x4(x0.xy);
        let b0 = f16x4(x0.zw);
        let c0 = f16x4(x1.xy);
        let d0 = f16x4(x1.zw);
        x_tile[id.y * 2u][id.x * PITCH] = a0.x;
        x_tile[id.y * 2u][id.x * PITCH + 1u] = a0.y;
        x_tile[id.y * 2u][id.x * PITCH + 2u] = a0.z;
        x_tile[id.y * 2u][id.x * PITCH + 3u] = a0.w;
        x_tile[id.y * 2u][id.x * PITCH + 4u] = b0.x;
        x_tile[id.y * 2u][id.x * PITCH + 5u] = b0.y;
        x_tile[id.y * 2u][id.x * PITCH + 6u] = b0.z;
        x_tile[id.y * 2u][id.x * PITCH + 7u] = b0.w;
        x_tile[id.y * 2u][id.x * PITCH + 8u] = c0.x;
        x_tile[id.y * 2u][id.x * PITCH + 9u] = c0.y;
        x_tile[id.y * 2u][id.x * PITCH + 10u] = c0.z;
        x_tile[id.y * 2u][id.x * PITCH + 11u] = c0.w;
        x_tile[id.y * 2u][id.x * PITCH + 12u] = d0.x;
        x_tile[id.y * 2u][id.x * PITCH + 13u] = d0.y;
        x_tile[id.y * 2u][id.x * PITCH + 14u] = d0.z;
        x_tile[id.y * 2u][id.x * PITCH + 15u] = d0.w;
        let a1 = f16x4(x2.xy);
        let b1 = f16x4(x2.zw);
        let c1 = f16x4(x3.xy);
        let d1 = f16x4(x3.zw);
        x_tile[id.y * 2u + 1u][id.x * PITCH] = a1.x;
        x_tile[id.y * 2u + 1u][id.x * PITCH + 1u] = a1.y;
        x_tile[id.y * 2u + 1u][id.x * PITCH + 2u] = a1.z;
        x_tile[id.y * 2u + 1u][id.x * PITCH + 3u] = a1.w;
        x_tile[id.y * 2u + 1u][id.x * PITCH + 4u] = b1.x;
        x_tile[id.y * 2u + 1u][id.x * PITCH + 5u] = b1.y;
        x_tile[id.y * 2u + 1u][id.x * PITCH + 6u] = b1.z;
        x_tile[id.y * 2u + 1u][id.x * PITCH + 7u] = b1.w;
        x_tile[id.y * 2u + 1u][id.x * PITCH + 8u] = c1.x;
        x_tile[id.y * 2u + 1u][id.x * PITCH + 9u] = c1.y;
        x_tile[id.y * 2u + 1u][id.x * PITCH + 10u] = c1.z;
        x_tile[id.y * 2u + 1u][id.x * PITCH + 11u] = c1.w;
        x_tile[id.y * 2u + 1u][id.x * PITCH + 12u] = d1.x;
        x_tile[id.y * 2u + 1u][id.x * PITCH + 13u] = d1.y;
        x_tile[id.y * 2u + 1u][id.x * PITCH + 14u] = d1.z;
        x_tile[id.y * 2u + 1u][id.x * PITCH + 15u] = d1.w;
        let a2 = f16x4(w0.xy);
        let b2 = f16x4(w0.zw);
        let c2 = f16x4(w1.xy);
        let d2 = f16x4(w1.zw);
        w_tile[id.y][id.x * PITCH] = a2.x;
        w_tile[id.y][id.x * PITCH + 1u] = a2.y;
        w_tile[id.y][id.x * PITCH + 2u] = a2.z;
        w_tile[id.y][id.x * PITCH + 3u] = a2.w;
        w_tile[id.y][id.x * PITCH + 4u] = b2.x;
        w_tile[id.y][id.x * PITCH + 5u] = b2.y;
        w_tile[id.y][id.x * PITCH + 6u] = b2.z;
        w_tile[id.y][id.x * PITCH + 7u] = b2.w;
        w_tile[id.y][id.x * PITCH + 8u] = c2.x;
        w_tile[id.y][id.x * PITCH + 9u] = c2.y;
        w_tile[id.y][id.x * PITCH + 10u] = c2.z;
        w_tile[id.y][id.x * PITCH + 11u] = c2.w;
        w_tile[id.y][id.x * PITCH + 12u] = d2.x;
        w_tile[id.y][id.x * PITCH + 13u] = d2.y;
        w_tile[id.y][id.x * PITCH + 14u] = d2.z;
        w_tile[id.y][id.x * PITCH + 15u] = d2.w;
        workgroupBarrier();
        fetch(x, w, select(k, k + 2u, k + 2u < slabs), s % 2u);
        {
            let l0 = subgroupMatrixLoad<Left>(&x_tile[down], 0u, false, PITCH);
            let l1 = subgroupMatrixLoad<Left>(&x_tile[down], LOWER, false, PITCH);
            let l2 = subgroupMatrixLoad<Left>(&x_tile[down + 2u], 0u, false, PITCH);
            let l3 = subgroupMatrixLoad<Left>(&x_tile[down + 2u], LOWER, false, PITCH);
            let r0 = subgroupMatrixLoad<Right>(&w_tile[over], 0u, true, PITCH);
            let r1 = subgroupMatrixLoad<Right>(&w_tile[over], LOWER, true, PITCH);
            c00 = subgroupMatrixMultiplyAccumulate(l0, r0, c00);
            c10 = subgroupMatrixMultiplyAccumulate(l1, r0, c10);
            c20 = subgroupMatrixMultiplyAccumulate(l2, r0, c20);
            c30 = subgroupMatrixMultiplyAccumulate(l3, r0, c30);
            c01 = subgroupMatrixMultiplyAccumulate(l0, r1, c01);
            c11 = subgroupMatrixMultiplyAccumulate(l1, r1, c11);
            c21 = subgroupMatrixMultiplyAccumulate(l2, r1, c21);
            c31 = subgroupMatrixMultiplyAccumulate(l3, r1, c31);
        }
        {
            let l0 = subgroupMatrixLoad<Left>(&x_tile[down + 1u], 0u, false, PITCH);
            let l1 = subgroupMatrixLoad<Left>(&x_tile[down + 1u], LOWER, false, PITCH);
            let l2 = subgroupMatrixLoad<Left>(&x_tile[down + 3u], 0u, false, PITCH);
            let l3 = subgroupMatrixLoad<Left>(&x_tile[down + 3u], LOWER, false, PITCH);
            let r0 = subgroupMatrixLoad<Right>(&w_tile[over + 1u], 0u, true, PITCH);
            let r1 = subgroupMatrixLoad<Right>(&w_tile[over + 1u], LOWER, true, PITCH);
            c00 = subgroupMatrixMultiplyAccumulate(l0, r0, c00);
            c10 = subgroupMatrixMultiplyAccumulate(l1, r0, c10);
            c20 = subgroupMatrixMultiplyAccumulate(l2, r0, c20);
            c30 = subgroupMatrixMultiplyAccumulate(l3, r0, c30);
            c01 = subgroupMatrixMultiplyAccumulate(l0, r1, c01);
            c11 = subgroupMatrixMultiplyAccumulate(l1, r1, c11);
            c21 = subgroupMatrixMultiplyAccumulate(l2, r1, c21);
            c31 = subgroupMatrixMultiplyAccumulate(l3, r1, c31);
        }
        workgroupBarrier();
    }
    let row = row0 + s / 2u * 64u;
    let output = output0 + s % 2u * 32u;
    if (row0 + 128u <= n && output0 + 64u <= params.row_count) {
        subgroupMatrixStore(&arena, offset_of(row, output), c00, false, params.out0_stride);
        subgroupMatrixStore(&arena, offset_of(row, output + 16u), c01, false, params.out0_stride);
        subgroupMatrixStore(&arena, offset_of(row + 16u, output), c10, false, params.out0_stride);
        subgroupMatrixStore(&arena, offset_of(row + 16u, output + 16u), c11, false, params.out0_stride);
        subgroupMatrixStore(&arena, offset_of(row + 32u, output), c20, false, params.out0_stride);
        subgroupMatrixStore(&arena, offset_of(row + 32u, output + 16u), c21, false, params.out0_stride);
        subgroupMatrixStore(&arena, offset_of(row + 48u, output), c30, false, params.out0_stride);
        subgroupMatrixStore(&arena, offset_of(row + 48u, output + 16u), c31, false, params.out0_stride);
    } else {
        store_some(c00, row, output, s, id.x);
        store_some(c01, row, output + 16u, s, id.x);
        store_some(c10, row + 16u, output, s, id.x);
        store_some(c11, row + 16u, output + 16u, s, id.x);
        store_some(c20, row + 32u, output, s, id.x);
        store_some(c21, row + 32u, output + 16u, s, id.x);
        store_some(c30, row + 48u, output, s, id.x);
        store_some(c31, row + 48u, output + 16u, s, id.x);
    }
}
