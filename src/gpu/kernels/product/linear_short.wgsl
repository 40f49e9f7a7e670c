// uses: params.product common/pass <shape> <tile> <run> product/tile
// linear_short: Y = X W^T for 9 to 64 rows, or for rows grouped by expert (GROUPED), f32.
// X: [rows][k], W: [outputs][k] or [expert][outputs][k], Y: [rows][outputs].
//
// A workgroup computes a tile of ROWS rows by 128 outputs (<tile>: 64 rows, or 32 of an expert); a thread computes 8
// rows of it by 8 outputs (ROWS 32: by 4), and omits four rows that do not exist. 64 values of k are loaded at a time
// (product/run) and go through workgroup memory in quarters of sixteen; activations are loaded one quarter ahead. The
// sums of a quarter are straight code: a loop over k takes a quarter longer. Workgroup memory as in
// product/linear_tile.
const OUTS = 128u;
const K_STEP = 64u;
const THREADS = 128u;
const DOWN = ROWS / 8u;          // threads over the rows
const ACROSS = THREADS / DOWN;   // threads over the outputs
const TWICE = ACROSS < 32u; // a thread has two groups of four outputs

var<workgroup> x_tile: array<array<array<vec4<f32>, ROWS / 4u>, 4>, 4>;
var<workgroup> w_tile: array<array<array<vec4<f32>, 32>, 4>, 4>;

// rows 4 (ty + DOWN i).. of i = 0, 1; outputs 4 tx.., 4 (tx + ACROSS)..
var<private> s00: Sums4x4;
var<private> s01: Sums4x4;
var<private> s10: Sums4x4;
var<private> s11: Sums4x4;

fn one(c: u32, e: u32, w_at: u32, x: u32, both: bool) {
    let w = w_tile[c][e][w_at];
    let x0 = x_tile[c][e][x];
    s00 = add_outer(s00, x0, w);
    if (TWICE) { s01 = add_outer(s01, x0, w_tile[c][e][w_at ^ ACROSS]); }
    if (both) {
        let x1 = x_tile[c][e][x ^ DOWN];
        s10 = add_outer(s10, x1, w);
        if (TWICE) { s11 = add_outer(s11, x1, w_tile[c][e][w_at ^ ACROSS]); }
    }
}

// Output vectors of v = 1 and 2 are swizzled, so that the two parts of an output do not share a bank.
fn swizzled(v: u32) -> u32 { return 4u * ((v ^ (v >> 1u)) & 1u); }

fn four(c: u32, tx: u32, ty: u32, both: bool) {
    let x = ty ^ (2u * c);
    let w = tx ^ swizzled(c);
    one(c, 0u, w, x, both);
    one(c, 1u, w, x, both);
    one(c, 2u, w, x, both);
    one(c, 3u, w, x, both);
}

fn sixteen(tx: u32, ty: u32, both: bool) {
    four(0u, tx, ty, both);
    four(1u, tx, ty, both);
    four(2u, tx, ty, both);
    four(3u, tx, ty, both);
}

// A quarter of output o: the values of v and of `other`, relative to k.
fn store_quarter(run: ptr<function, Run>, j: u32, o: u32, v: u32, other: u32, k: u32) {
    unpack_quarter(run, j);
    mask_pair(k + 16u * v + 4u * j, k + 16u * other + 4u * j);
    store_w(v, (o >> 2u) ^ swizzled(v), o & 3u, wa);
    store_w(other, (o >> 2u) ^ swizzled(other), o & 3u, wb);
}

@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let t = tile_of(group, ROWS, OUTS);
    if (t.count == 0u) { return; }
    let begin = group.z * params.split_steps * K_STEP;
    let end = min(begin + params.split_steps * K_STEP, params.k);
    let tx = local % ACROSS;
    let ty = local / ACROSS;
    let row = select(0u, 4u * ty, GROUPED); // experts: threads without rows, at least 32 neighbors, idle
    // this thread loads: vector `v` of row r, and with 64 rows of r + 32; part `p` of outputs o and o + 64
    let r = local >> 2u;
    let v = local & 3u;
    let x0 = input_of(row_at(t, r));
    let x1 = input_of(row_at(t, r + 32u));
    let x_at = (r >> 2u) ^ (2u * v);
    let o = local >> 1u;
    let p = local & 1u;
    let wv = FIRST_V * p;
    let other = wv + 3u - FIRST_V;
    let w0 = weights_of(t, o);
    let w1 = weights_of(t, o + 64u);

    var next0 = input4(x0, begin + 16u * v);
    var next1 = next0;
    if (TWICE) { next1 = input4(x1, begin + 16u * v); }
    for (var k = begin; k < end; k += K_STEP) {
        var run0 = fetch(w0, k / K_STEP, p);
        var run1 = fetch(w1, k / K_STEP, p);
        for (var j = 0u; j < 4u; j++) {
            store_x(v, x_at, r & 3u, next0);
            if (TWICE) { store_x(v, x_at ^ 8u, r & 3u, next1); }
            store_quarter(&run0, j, o, wv, other, k);
            store_quarter(&run1, j, o + 64u, wv, other, k);
            workgroupBarrier();
            let then = select(k + 4u * j + 4u, select(k, k + K_STEP, k + K_STEP < end), j == 3u);
            next0 = input4(x0, then + 16u * v);
            if (TWICE) { next1 = input4(x1, then + 16u * v); }
            if (t.count > row + 4u * DOWN) {
                sixteen(tx, ty, true);
            } else if (t.count > row) {
                sixteen(tx, ty, false);
            }
            workgroupBarrier();
        }
    }
    let output = t.output0 + 4u * tx;
    store(t, s00, 4u * ty, output, group.z);
    store(t, s10, 4u * (ty + DOWN), output, group.z);
    if (TWICE) {
        store(t, s01, 4u * ty, output + 4u * ACROSS, group.z);
        store(t, s11, 4u * (ty + DOWN), output + 4u * ACROSS, group.z);
    }
}
