// linear of many rows with weights in f16, on subgroup matrices. A workgroup makes 128 rows by 64 outputs, each of its four
// subgroups 64 by 32 of it; two slabs of k at a time go through workgroup memory, and what the next two need is fetched
// before these are multiplied. Rows come in slabs from the side buffer (halves.wgsl), weights as they lie.
@group(0) @binding(3) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> side: array<vec4<u32>>;

var<workgroup> x_tile: array<array<f16, SLAB>, 8>; // [32 rows][slab of k]
var<workgroup> w_tile: array<array<f16, SLAB>, 4>; // [32 outputs][slab of k]
var<workgroup> corner: array<array<f32, 256>, 4>;   // of a subgroup: a matrix at the edge

// What a thread fetches: its row of two slabs, its output of one.
var<private> x0: vec4<u32>;
var<private> x1: vec4<u32>;
var<private> x2: vec4<u32>;
var<private> x3: vec4<u32>;
var<private> w0: vec4<u32>;
var<private> w1: vec4<u32>;

fn fetch(x: u32, w: u32, k: u32, part: u32) {
    let last = step.k / 16u - 1u;
    let then = min(k + 1u, last);
    x0 = side[x + 64u * k];
    x1 = side[x + 64u * k + 32u];
    x2 = side[x + 64u * then];
    x3 = side[x + 64u * then + 32u];
    let at = w + 2u * min(k + part, last);
    w0 = weights[at];
    w1 = weights[at + 1u];
}

fn put_x(slab: u32, at: u32, low: vec4<u32>, high: vec4<u32>) {
    let a = four(low.xy);
    let b = four(low.zw);
    let c = four(high.xy);
    let d = four(high.zw);
    x_tile[slab][at] = a.x;
    x_tile[slab][at + 1u] = a.y;
    x_tile[slab][at + 2u] = a.z;
    x_tile[slab][at + 3u] = a.w;
    x_tile[slab][at + 4u] = b.x;
    x_tile[slab][at + 5u] = b.y;
    x_tile[slab][at + 6u] = b.z;
    x_tile[slab][at + 7u] = b.w;
    x_tile[slab][at + 8u] = c.x;
    x_tile[slab][at + 9u] = c.y;
    x_tile[slab][at + 10u] = c.z;
    x_tile[slab][at + 11u] = c.w;
    x_tile[slab][at + 12u] = d.x;
    x_tile[slab][at + 13u] = d.y;
    x_tile[slab][at + 14u] = d.z;
    x_tile[slab][at + 15u] = d.w;
}

fn put_w(slab: u32, at: u32) {
    let a = four(w0.xy);
    let b = four(w0.zw);
    let c = four(w1.xy);
    let d = four(w1.zw);
    w_tile[slab][at] = a.x;
    w_tile[slab][at + 1u] = a.y;
    w_tile[slab][at + 2u] = a.z;
    w_tile[slab][at + 3u] = a.w;
    w_tile[slab][at + 4u] = b.x;
    w_tile[slab][at + 5u] = b.y;
    w_tile[slab][at + 6u] = b.z;
    w_tile[slab][at + 7u] = b.w;
    w_tile[slab][at + 8u] = c.x;
    w_tile[slab][at + 9u] = c.y;
    w_tile[slab][at + 10u] = c.z;
    w_tile[slab][at + 11u] = c.w;
    w_tile[slab][at + 12u] = d.x;
    w_tile[slab][at + 13u] = d.y;
    w_tile[slab][at + 14u] = d.z;
    w_tile[slab][at + 15u] = d.w;
}

fn place_of(row: u32, output: u32) -> u32 { return step.out0 + row * step.out0_stride + step.first_row + output; }

// Of a matrix that may reach beyond the rows or outputs there are.
fn put_some(m: Sums, row: u32, output: u32, s: u32, lane: u32) {
    workgroupBarrier();
    subgroupMatrixStore(&corner[s], 0u, m, false, 16u);
    workgroupBarrier();
    let y = row + lane / 2u;
    let first = output + 8u * (lane % 2u);
    for (var i = 0u; i < 8u; i++) {
        if (y < live_rows() && first + i < step.row_count) { arena[place_of(y, first + i)] = corner[s][8u * lane + i]; }
    }
}

@compute @workgroup_size(32, 4)
fn main(@builtin(local_invocation_id) id: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {
    let n = live_rows();
    let row0 = group.y * 128u;
    if (row0 >= n) { return; }
    let output0 = group.x * 64u;
    let slabs = step.k / 16u;
    let s = id.y;
    let x = step.in0 + (row0 / 32u + s) * slabs * 64u + id.x;
    let w = min(output0 + (s / 2u) * 32u + id.x, step.row_count - 1u) * (step.row_bytes / 16u);
    let down = s / 2u * 4u; // slabs of this subgroup's rows and outputs
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
        put_x(id.y * 2u, id.x * PITCH, x0, x1);
        if (k + 1u == slabs) { // the last one alone; looking at what was fetched any earlier would be waiting for it
            x2 = vec4<u32>();
            x3 = vec4<u32>();
        }
        put_x(id.y * 2u + 1u, id.x * PITCH, x2, x3);
        put_w(id.y, id.x * PITCH);
        workgroupBarrier();
        fetch(x, w, select(k, k + 2u, k + 2u < slabs), s % 2u);
        for (var t = 0u; t < 2u; t++) {
            let l0 = subgroupMatrixLoad<Left>(&x_tile[down + t], 0u, false, PITCH);
            let l1 = subgroupMatrixLoad<Left>(&x_tile[down + t], LOWER, false, PITCH);
            let l2 = subgroupMatrixLoad<Left>(&x_tile[down + 2u + t], 0u, false, PITCH);
            let l3 = subgroupMatrixLoad<Left>(&x_tile[down + 2u + t], LOWER, false, PITCH);
            let r0 = subgroupMatrixLoad<Right>(&w_tile[over + t], 0u, true, PITCH);
            let r1 = subgroupMatrixLoad<Right>(&w_tile[over + t], LOWER, true, PITCH);
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
    if (row0 + 128u <= n && output0 + 64u <= step.row_count) {
        subgroupMatrixStore(&arena, place_of(row, output), c00, false, step.out0_stride);
        subgroupMatrixStore(&arena, place_of(row, output + 16u), c01, false, step.out0_stride);
        subgroupMatrixStore(&arena, place_of(row + 16u, output), c10, false, step.out0_stride);
        subgroupMatrixStore(&arena, place_of(row + 16u, output + 16u), c11, false, step.out0_stride);
        subgroupMatrixStore(&arena, place_of(row + 32u, output), c20, false, step.out0_stride);
        subgroupMatrixStore(&arena, place_of(row + 32u, output + 16u), c21, false, step.out0_stride);
        subgroupMatrixStore(&arena, place_of(row + 48u, output), c30, false, step.out0_stride);
        subgroupMatrixStore(&arena, place_of(row + 48u, output + 16u), c31, false, step.out0_stride);
    } else {
        put_some(c00, row, output, s, id.x);
        put_some(c01, row, output + 16u, s, id.x);
        put_some(c10, row + 16u, output, s, id.x);
        put_some(c11, row + 16u, output + 16u, s, id.x);
        put_some(c20, row + 32u, output, s, id.x);
        put_some(c21, row + 32u, output + 16u, s, id.x);
        put_some(c30, row + 48u, output, s, id.x);
        put_some(c31, row + 48u, output + 16u, s, id.x);
    }
}
