// uses: params.product common/pass <shape> <eight> product/tile
// linear_tile: Y = X W^T for more than 64 rows, f32. Prompts, and encoders whose weights are f16 or f32.
// X: [rows][k], W: [outputs][k], Y: [rows][outputs]. With several splits of k (group.z) each leaves partial sums at
// out1.
//
// A workgroup computes a tile of 128 rows by 64 outputs, 16 values of k at a time through workgroup memory; a thread
// computes 8 by 8 of it. The next 16 are loaded before these are summed.
//
// Workgroup memory is [k / 4][k % 4][row / 4], so that a thread reads four rows, or four outputs, at once. Constant
// indices come first: a compiler that checks indices then checks the last one only, once for all. Vectors of different
// k are swizzled (^), so that threads that store neighboring k of one row do not share banks.
const GROUPED = false;
const ROWS = 128u;
const OUTS = 64u;
const K_STEP = 16u;
const THREADS = 128u;

var<workgroup> x_tile: array<array<array<vec4<f32>, 32>, 4>, 4>;
var<workgroup> w_tile: array<array<array<vec4<f32>, 16>, 4>, 4>;

// rows 4 ty.. and 64 + 4 ty..; outputs 4 tx.. and 32 + 4 tx..
var<private> s00: Sums4x4;
var<private> s01: Sums4x4;
var<private> s10: Sums4x4;
var<private> s11: Sums4x4;

fn one(c: u32, e: u32, tx: u32, ty: u32) {
    let x0 = x_tile[c][e][ty];
    let x1 = x_tile[c][e][ty ^ 16u];
    let w0 = w_tile[c][e][tx];
    let w1 = w_tile[c][e][tx ^ 8u];
    s00 = add_outer(s00, x0, w0);
    s01 = add_outer(s01, x0, w1);
    s10 = add_outer(s10, x1, w0);
    s11 = add_outer(s11, x1, w1);
}

fn four(c: u32, tx: u32, ty: u32) {
    let x = ty ^ (2u * c);
    let w = tx ^ (4u * (c / 2u));
    one(c, 0u, w, x);
    one(c, 1u, w, x);
    one(c, 2u, w, x);
    one(c, 3u, w, x);
}

@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let t = tile_of(group, ROWS, OUTS);
    if (t.count == 0u) { return; }
    let begin = group.z * params.split_steps * K_STEP;
    let end = min(begin + params.split_steps * K_STEP, params.k);
    // 8 by 4 threads of a subgroup of 32, so that they share their loads
    let tx = local & 7u;
    let ty = local >> 3u;
    // this thread loads: vector `v` of rows r, r + 32, r + 64 and r + 96; half `u` of output `o`
    let r = local >> 2u;
    let v = local & 3u;
    let x0 = input_of(row_at(t, r));
    let x1 = input_of(row_at(t, r + 32u));
    let x2 = input_of(row_at(t, r + 64u));
    let x3 = input_of(row_at(t, r + 96u));
    let x_at = (r >> 2u) ^ (2u * v);
    let o = local >> 1u;
    let u = local & 1u;
    let w = weights_of(t, o);
    let w_at = (o >> 2u) ^ (4u * u);

    unpack8(w, begin / 8u + u);
    mask8(begin + 8u * u);
    var next_a = wa;
    var next_b = wb;
    var next0 = input4(x0, begin + 4u * v);
    var next1 = input4(x1, begin + 4u * v);
    var next2 = input4(x2, begin + 4u * v);
    var next3 = input4(x3, begin + 4u * v);
    for (var k = begin; k < end; k += 16u) {
        store_w(2u * u, w_at, o & 3u, next_a);
        store_w(2u * u + 1u, w_at, o & 3u, next_b);
        store_x(v, x_at, r & 3u, next0);
        store_x(v, x_at ^ 8u, r & 3u, next1);
        store_x(v, x_at ^ 16u, r & 3u, next2);
        store_x(v, x_at ^ 24u, r & 3u, next3);
        workgroupBarrier();
        let then = select(k, k + 16u, k + 16u < end);
        unpack8(w, then / 8u + u);
        mask8(then + 8u * u);
        next_a = wa;
        next_b = wb;
        next0 = input4(x0, then + 4u * v);
        next1 = input4(x1, then + 4u * v);
        next2 = input4(x2, then + 4u * v);
        next3 = input4(x3, then + 4u * v);
        four(0u, tx, ty);
        four(1u, tx, ty);
        four(2u, tx, ty);
        four(3u, tx, ty);
        workgroupBarrier();
    }
    store(t, s00, 4u * ty, t.output0 + 4u * tx, group.z);
    store(t, s01, 4u * ty, t.output0 + 32u + 4u * tx, group.z);
    store(t, s10, 64u + 4u * ty, t.output0 + 4u * tx, group.z);
    store(t, s11, 64u + 4u * ty, t.output0 + 32u + 4u * tx, group.z);
}
