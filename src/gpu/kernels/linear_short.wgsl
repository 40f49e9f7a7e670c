// linear for some dozens of rows, of one matrix or (GROUPED) of each expert's own: a workgroup makes a tile of 32 rows by 128 outputs,
// 16 values of k at a time; a thread makes 16 by 4 of it, and leaves out what lies behind the last row, by eights. Workgroup
// memory as in linear_tile.wgsl.
const ROWS = 32u;
const OUTS = 128u;
const THREADS = 64u;

var<workgroup> x_tile: array<array<array<vec4<f32>, 8>, 4>, 4>;
var<workgroup> w_tile: array<array<array<vec4<f32>, 32>, 4>, 4>;

// rows 4 ty.., 8 + 4 ty.., 16 + 4 ty.., 24 + 4 ty..; outputs 4 tx..
var<private> s0: Square;
var<private> s1: Square;
var<private> s2: Square;
var<private> s3: Square;

fn one(c: u32, e: u32, tx: u32, x: u32, eights: u32) {
    let w = w_tile[c][e][tx];
    s0 = more(s0, x_tile[c][e][x], w);
    if (eights > 1u) { s1 = more(s1, x_tile[c][e][x ^ 2u], w); }
    if (eights > 2u) { s2 = more(s2, x_tile[c][e][x ^ 4u], w); }
    if (eights > 3u) { s3 = more(s3, x_tile[c][e][x ^ 6u], w); }
}

fn four(c: u32, tx: u32, ty: u32, eights: u32) {
    let x = ty ^ (2u * c);
    one(c, 0u, tx, x, eights);
    one(c, 1u, tx, x, eights);
    one(c, 2u, tx, x, eights);
    one(c, 3u, tx, x, eights);
}

fn store_output(o: u32) { // the sixteen weights at hand
    store_w(0u, o >> 2u, o & 3u, wa);
    store_w(1u, o >> 2u, o & 3u, wb);
    store_w(2u, o >> 2u, o & 3u, wc);
    store_w(3u, o >> 2u, o & 3u, wd);
}

@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let t = tile_of(group, ROWS, OUTS);
    if (t.count == 0u) { return; }
    let begin = group.z * step.stretch * 16u;
    let end = min(begin + step.stretch * 16u, step.k);
    let tx = (local & 15u) + 16u * (local >> 5u);
    let ty = (local >> 4u) & 1u;
    // what this thread fetches: vector `v` of rows r and r + 16; outputs `local` and local + 64
    let r = local >> 2u;
    let v = local & 3u;
    let x0 = input_of(row_at(t, r));
    let x1 = input_of(row_at(t, r + 16u));
    let x_at = (r >> 2u) ^ (2u * v);
    let w0 = weights_of(t, local);
    let w1 = weights_of(t, local + 64u);
    for (var k = begin; k < end; k += 16u) {
        store_x(v, x_at, r & 3u, input4(x0, k + 4u * v));
        store_x(v, x_at ^ 4u, r & 3u, input4(x1, k + 4u * v));
        sixteen(w0, k / 16u);
        keep16(k);
        store_output(local);
        sixteen(w1, k / 16u);
        keep16(k);
        store_output(local + 64u);
        workgroupBarrier();
        for (var c = 0u; c < 4u; c++) {
            if (t.count > 24u) {
                four(c, tx, ty, 4u);
            } else if (t.count > 16u) {
                four(c, tx, ty, 3u);
            } else if (t.count > 8u) {
                four(c, tx, ty, 2u);
            } else {
                four(c, tx, ty, 1u);
            }
        }
        workgroupBarrier();
    }
    let o = t.output0 + 4u * tx;
    put(t, s0, 4u * ty, o, group.z);
    put(t, s1, 8u + 4u * ty, o, group.z);
    put(t, s2, 16u + 4u * ty, o, group.z);
    put(t, s3, 24u + 4u * ty, o, group.z);
}
