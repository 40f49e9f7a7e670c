// soft_embed, flat distributions: sums over a stretch of the vocabulary of e (soft_weigh.wgsl) times a token's row of the
// table. A workgroup makes ROWS rows by COLS columns, DEEP tokens at a time through workgroup memory; a thread makes 8 by 8 of it.
const ROWS = 64u;
const COLS = 128u;
const DEEP = 16u;
const THREADS = 128u;

var<workgroup> p_tile: array<vec4<f32>, DEEP * ROWS / 4u>; // [token][rows by four]
var<workgroup> w_tile: array<vec4<f32>, DEEP * COLS / 4u>; // [token][columns by four]

fn put(row: u32, n: u32, column: u32, sum: vec4<f32>, y: u32) {
    if (row >= n) { return; }
    for (var i = 0u; i < 4u; i++) {
        if (column + i < step.cols) { arena[y + row * step.cols + column + i] = sum[i]; }
    }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    if (group_listed(local)) { return; }
    let n = live_rows();
    let column0 = group.x * COLS;
    let row0 = group.y * ROWS;
    let begin = group.z * step.stretch;              // of the binding's tokens
    let end = min(begin + step.stretch, step.row_count);
    let tx = local & 15u;
    let ty = local >> 4u;
    var a0 = vec4<f32>(); // rows ty * 4 + i, columns tx * 4
    var a1 = vec4<f32>();
    var a2 = vec4<f32>();
    var a3 = vec4<f32>();
    var b0 = vec4<f32>(); // columns 64 further
    var b1 = vec4<f32>();
    var b2 = vec4<f32>();
    var b3 = vec4<f32>();
    var c0 = vec4<f32>(); // rows 32 further
    var c1 = vec4<f32>();
    var c2 = vec4<f32>();
    var c3 = vec4<f32>();
    var d0 = vec4<f32>(); // both
    var d1 = vec4<f32>();
    var d2 = vec4<f32>();
    var d3 = vec4<f32>();
    for (var v0 = begin; v0 < end; v0 += DEEP) {
        for (var i = local; i < DEEP * COLS / 8u; i += THREADS) {
            let t = i / (COLS / 8u);
            let u = i % (COLS / 8u);
            wa = vec4<f32>();
            wb = vec4<f32>();
            if (v0 + t < end && column0 + u * 8u < step.cols) {
                eight((v0 + t) * step.row_bytes, column0 / 8u + u);
            }
            w_tile[t * (COLS / 4u) + 2u * u] = wa;
            w_tile[t * (COLS / 4u) + 2u * u + 1u] = wb;
        }
        for (var i = local; i < DEEP * ROWS / 4u; i += THREADS) {
            let t = i % DEEP;
            let r = i / DEEP * 4u;
            var e = vec4<f32>();
            if (v0 + t < end) {
                for (var j = 0u; j < 4u; j++) {
                    let row = min(row0 + r + j, n - 1u);
                    e[j] = arena[step.in0 + row * step.in0_stride + step.first_row + v0 + t];
                }
            }
            p_tile[t * (ROWS / 4u) + r / 4u] = e;
        }
        workgroupBarrier();
        for (var t = 0u; t < DEEP; t++) {
            let w = w_tile[t * (COLS / 4u) + tx];
            let v = w_tile[t * (COLS / 4u) + tx + COLS / 8u];
            let p = p_tile[t * (ROWS / 4u) + ty];
            let q = p_tile[t * (ROWS / 4u) + ty + ROWS / 8u];
            a0 = fma(vec4<f32>(p.x), w, a0);
            a1 = fma(vec4<f32>(p.y), w, a1);
            a2 = fma(vec4<f32>(p.z), w, a2);
            a3 = fma(vec4<f32>(p.w), w, a3);
            b0 = fma(vec4<f32>(p.x), v, b0);
            b1 = fma(vec4<f32>(p.y), v, b1);
            b2 = fma(vec4<f32>(p.z), v, b2);
            b3 = fma(vec4<f32>(p.w), v, b3);
            c0 = fma(vec4<f32>(q.x), w, c0);
            c1 = fma(vec4<f32>(q.y), w, c1);
            c2 = fma(vec4<f32>(q.z), w, c2);
            c3 = fma(vec4<f32>(q.w), w, c3);
            d0 = fma(vec4<f32>(q.x), v, d0);
            d1 = fma(vec4<f32>(q.y), v, d1);
            d2 = fma(vec4<f32>(q.z), v, d2);
            d3 = fma(vec4<f32>(q.w), v, d3);
        }
        workgroupBarrier();
    }
    let y = step.out1 + (step.first_part + group.z) * step.out1_stride;
    let row = row0 + ty * 4u;
    let column = column0 + tx * 4u;
    put(row, n, column, a0, y);
    put(row + 1u, n, column, a1, y);
    put(row + 2u, n, column, a2, y);
    put(row + 3u, n, column, a3, y);
    put(row, n, column + 64u, b0, y);
    put(row + 1u, n, column + 64u, b1, y);
    put(row + 2u, n, column + 64u, b2, y);
    put(row + 3u, n, column + 64u, b3, y);
    put(row + 32u, n, column, c0, y);
    put(row + 33u, n, column, c1, y);
    put(row + 34u, n, column, c2, y);
    put(row + 35u, n, column, c3, y);
    put(row + 32u, n, column + 64u, d0, y);
    put(row + 33u, n, column + 64u, d1, y);
    put(row + 34u, n, column + 64u, d2, y);
    put(row + 35u, n, column + 64u, d3, y);
}
