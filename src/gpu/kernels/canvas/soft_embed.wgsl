// uses: params.canvas common/pass <sixteen> common/sums4x4 <shape>
// soft_embed, flat distributions: partial sums of e * table[token] over a range of the vocabulary, as a matrix product.
// in0: e, [rows][vocabulary] (canvas/soft_weigh); table: [vocabulary][cols]; out1: [part][rows][cols].
//
// A workgroup computes 64 rows by 128 columns, sixteen tokens at a time through workgroup memory; a thread computes 8
// by 8, in straight code. The next sixteen tokens are loaded before these are summed. As product/linear_short, but
// weights are neighboring columns of a token, which stay together.
const ROWS = 64u;
const COLS = 128u;
const TOKENS = 16u;
const THREADS = 128u;

// [token / 4][token % 4][row / 4, or column / 4], swizzled (^) so that neighboring threads do not share banks when
// they store.
var<workgroup> p_tile: array<array<array<vec4<f32>, ROWS / 4u>, 4>, 4>;
var<workgroup> w_tile: array<array<array<vec4<f32>, COLS / 4u>, 4>, 4>;
var<workgroup> all_fit: u32;

// sixteen(at, unit) loads values 16 unit .. of the table row that begins at byte `at` (type.sixteen or canvas/sixteen)
var<private> w0: vec4<f32>;
var<private> w1: vec4<f32>;
var<private> w2: vec4<f32>;
var<private> w3: vec4<f32>;

// rows 4 ty.. and 32 + 4 ty..; columns 4 tx.. and 64 + 4 tx..
var<private> s00: Sums4x4;
var<private> s01: Sums4x4;
var<private> s10: Sums4x4;
var<private> s11: Sums4x4;

fn one(c: u32, i: u32, w_at: u32, p_at: u32) {
    let p0 = p_tile[c][i][p_at];
    let p1 = p_tile[c][i][p_at ^ 8u];
    let v0 = w_tile[c][i][w_at];
    let v1 = w_tile[c][i][w_at ^ 18u];
    s00 = add_outer(s00, p0, v0);
    s01 = add_outer(s01, p0, v1);
    s10 = add_outer(s10, p1, v0);
    s11 = add_outer(s11, p1, v1);
}

fn four(c: u32, w_at: u32, ty: u32) {
    let p_at = ty ^ (2u * c);
    one(c, 0u, w_at, p_at);
    one(c, 1u, w_at, p_at);
    one(c, 2u, w_at, p_at);
    one(c, 3u, w_at, p_at);
}

// Index of a vector of columns.
fn swizzled(x: u32) -> u32 { return x ^ (x >> 3u); }

fn store_p(v: u32, at: u32, c: u32, e: vec4<f32>) {
    p_tile[v][0][at][c] = e.x;
    p_tile[v][1][at][c] = e.y;
    p_tile[v][2][at][c] = e.z;
    p_tile[v][3][at][c] = e.w;
}

fn store(s: Sums4x4, row: u32, column: u32, y: u32) {
    let n = live_rows();
    if (row < n) { store4(y + row * params.cols, column, s.a); }
    if (row + 1u < n) { store4(y + (row + 1u) * params.cols, column, s.b); }
    if (row + 2u < n) { store4(y + (row + 2u) * params.cols, column, s.c); }
    if (row + 3u < n) { store4(y + (row + 3u) * params.cols, column, s.d); }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    if (local == 0u) { all_fit = select(0u, 1u, listed_total() <= params.list_capacity); }
    if (workgroupUniformLoad(&all_fit) == 1u) { return; }
    let column0 = group.x * COLS;
    let row0 = group.y * ROWS;
    let begin = group.z * params.part_tokens; // tokens of this binding
    let end = min(begin + params.part_tokens, params.row_count);
    // 8 by 4 threads of a subgroup of 32, so that they share their loads
    let tx = (local & 7u) | ((local >> 2u) & 8u);
    let ty = ((local >> 3u) & 3u) | ((local >> 4u) & 4u);
    let w_at = swizzled(tx);
    // this thread loads: four tokens `v` of rows r and r + 32; sixteen columns of token `t`
    let r = local >> 2u;
    let v = local & 3u;
    let last = live_rows() - 1u;
    let e0 = params.in0 + params.first_row + min(row0 + r, last) * params.in0_stride;
    let e1 = params.in0 + params.first_row + min(row0 + r + 32u, last) * params.in0_stride;
    let p_at = (r >> 2u) ^ (2u * v);
    let t = local >> 3u;
    let j = local & 7u;
    let unit = min(column0 / 16u + j, (params.cols - 1u) / 16u);

    sixteen(min(begin + t, end - 1u) * params.row_bytes, unit);
    var next0 = load_e(e0, begin + 4u * v, end);
    var next1 = load_e(e1, begin + 4u * v, end);
    for (var v0 = begin; v0 < end; v0 += TOKENS) {
        w_tile[t >> 2u][t & 3u][swizzled(4u * j)] = w0;
        w_tile[t >> 2u][t & 3u][swizzled(4u * j + 1u)] = w1;
        w_tile[t >> 2u][t & 3u][swizzled(4u * j + 2u)] = w2;
        w_tile[t >> 2u][t & 3u][swizzled(4u * j + 3u)] = w3;
        store_p(v, p_at, r & 3u, next0);
        store_p(v, p_at ^ 8u, r & 3u, next1);
        workgroupBarrier();
        let then = select(v0, v0 + TOKENS, v0 + TOKENS < end);
        sixteen(min(then + t, end - 1u) * params.row_bytes, unit);
        next0 = load_e(e0, then + 4u * v, end);
        next1 = load_e(e1, then + 4u * v, end);
        four(0u, w_at, ty);
        four(1u, w_at, ty);
        four(2u, w_at, ty);
        four(3u, w_at, ty);
        workgroupBarrier();
    }
    let y = params.out1 + (params.first_part + group.z) * params.out1_stride;
    let row = row0 + 4u * ty;
    let column = column0 + 4u * tx;
    store(s00, row, column, y);
    store(s01, row, column + 64u, y);
    store(s10, row + 32u, column, y);
    store(s11, row + 32u, column + 64u, y);
}
