// uses: common/matrices params.product common/pass common/arena <run>
// linear_tile16: Y = X W^T for more than 64 rows, any block type, on subgroup matrices. Prompts on devices that have
// them.
// X: [rows][k] in f16 matrices of the side buffer, each row with a factor (product/to_tile16: in0, in1);
// W: [outputs][k]; sums are f32. k is a multiple of 64.
//
// A workgroup computes 128 rows by 128 outputs, each of its eight subgroups 32 by 64, 64 values of k at a time through
// workgroup memory; the next are loaded before these are multiplied. With several splits of k (group.z) each takes
// `split_steps` steps and leaves partial sums at out1 for product/split_sum.
const ROWS = 128u;
const OUTS = 128u;
const STEP = 64u;
const SECOND = 16u * FIRST_V;       // where part 1 of a run (product/run) begins
const OTHER = 16u * (3u - FIRST_V); // from a part's first values to its others
const W_PITCH = 72u;                // f16 values from output to output: padded, so that outputs do not share banks
const COLUMN = 2048u;               // f16 values of eight matrices: 128 rows by 16 values of k

@group(0) @binding(4) var<storage, read> side: array<vec4<u32>>;

var<workgroup> x_tile: array<f16, 4u * COLUMN>;    // [k / 16][row / 16][16][16]
var<workgroup> w_tile: array<f16, OUTS * W_PITCH>; // [output][k]
var<workgroup> corner: array<array<f32, 256>, 8>;  // per subgroup: a matrix of sums on its way to the arena
var<workgroup> factor: array<f32, ROWS>;           // of the rows

// The matrix of rows 16 i .. and values 16 j .. of the input.
fn matrix_at(i: u32, j: u32) -> u32 { return params.in0 + (i * (params.k / 16u) + j) * 32u; }

struct Target { y: u32, stride: u32, count: u32 } // where the sums go, rows that exist

// Rows `row` .. of the tile, outputs `output` .. of the binding.
fn store(m: Sums, t: Target, row: u32, output: u32, s: u32, lane: u32) {
    workgroupBarrier();
    subgroupMatrixStore(&corner[s], 0u, m, false, 16u);
    workgroupBarrier();
    let o = output + lane % 16u;
    for (var i = 0u; i < 8u; i++) {
        let r = row + 2u * i + lane / 16u;
        if (r < t.count && o < params.row_count) { arena[t.y + r * t.stride + o] = corner[s][32u * i + lane] * factor[r]; }
    }
}

@compute @workgroup_size(128, 2)
fn main(@builtin(local_invocation_id) id: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {
    let n = live_rows();
    let row0 = group.y * ROWS;
    if (row0 >= n) { return; }
    let output0 = group.x * OUTS;
    let local = id.x + 128u * id.y;
    let s = local / 32u; // subgroup
    let lane = local % 32u;
    if (local < ROWS) { factor[local] = bitcast<f32>(side[params.in1 + (row0 + local) / 4u][local % 4u]); }
    let begin = group.z * params.split_steps;
    let end = min(begin + params.split_steps, params.k / STEP);
    // this thread loads: part id.y of output id.x; vector `lane` of four matrices of rows 16 s ..
    let w = min(output0 + id.x, params.row_count - 1u) * params.row_bytes;
    let x = matrix_at(row0 / 16u + s, 0u) + lane;
    var run = fetch(w, begin, id.y);
    var x0 = side[x + 128u * begin];
    var x1 = side[x + 128u * begin + 32u];
    var x2 = side[x + 128u * begin + 64u];
    var x3 = side[x + 128u * begin + 96u];
    // this subgroup computes: rows down .., outputs over ..
    let down = s / 2u * 32u;
    let over = s % 2u * 64u;
    var c00 = Sums();
    var c01 = Sums();
    var c02 = Sums();
    var c03 = Sums();
    var c10 = Sums();
    var c11 = Sums();
    var c12 = Sums();
    var c13 = Sums();
    for (var step = begin; step < end; step++) {
        // Written out: in a function, with indices unknown to the compiler, every store is checked and issued alone.
        unpack_quarter(&run, 0u);
        w_tile[id.x * W_PITCH + id.y * SECOND + 0u] = f16(wa.x);
        w_tile[id.x * W_PITCH + id.y * SECOND + 1u] = f16(wa.y);
        w_tile[id.x * W_PITCH + id.y * SECOND + 2u] = f16(wa.z);
        w_tile[id.x * W_PITCH + id.y * SECOND + 3u] = f16(wa.w);
        w_tile[id.x * W_PITCH + id.y * SECOND + OTHER + 0u] = f16(wb.x);
        w_tile[id.x * W_PITCH + id.y * SECOND + OTHER + 1u] = f16(wb.y);
        w_tile[id.x * W_PITCH + id.y * SECOND + OTHER + 2u] = f16(wb.z);
        w_tile[id.x * W_PITCH + id.y * SECOND + OTHER + 3u] = f16(wb.w);
        unpack_quarter(&run, 1u);
        w_tile[id.x * W_PITCH + id.y * SECOND + 4u] = f16(wa.x);
        w_tile[id.x * W_PITCH + id.y * SECOND + 5u] = f16(wa.y);
        w_tile[id.x * W_PITCH + id.y * SECOND + 6u] = f16(wa.z);
        w_tile[id.x * W_PITCH + id.y * SECOND + 7u] = f16(wa.w);
        w_tile[id.x * W_PITCH + id.y * SECOND + OTHER + 4u] = f16(wb.x);
        w_tile[id.x * W_PITCH + id.y * SECOND + OTHER + 5u] = f16(wb.y);
        w_tile[id.x * W_PITCH + id.y * SECOND + OTHER + 6u] = f16(wb.z);
        w_tile[id.x * W_PITCH + id.y * SECOND + OTHER + 7u] = f16(wb.w);
        unpack_quarter(&run, 2u);
        w_tile[id.x * W_PITCH + id.y * SECOND + 8u] = f16(wa.x);
        w_tile[id.x * W_PITCH + id.y * SECOND + 9u] = f16(wa.y);
        w_tile[id.x * W_PITCH + id.y * SECOND + 10u] = f16(wa.z);
        w_tile[id.x * W_PITCH + id.y * SECOND + 11u] = f16(wa.w);
        w_tile[id.x * W_PITCH + id.y * SECOND + OTHER + 8u] = f16(wb.x);
        w_tile[id.x * W_PITCH + id.y * SECOND + OTHER + 9u] = f16(wb.y);
        w_tile[id.x * W_PITCH + id.y * SECOND + OTHER + 10u] = f16(wb.z);
        w_tile[id.x * W_PITCH + id.y * SECOND + OTHER + 11u] = f16(wb.w);
        unpack_quarter(&run, 3u);
        w_tile[id.x * W_PITCH + id.y * SECOND + 12u] = f16(wa.x);
        w_tile[id.x * W_PITCH + id.y * SECOND + 13u] = f16(wa.y);
        w_tile[id.x * W_PITCH + id.y * SECOND + 14u] = f16(wa.z);
        w_tile[id.x * W_PITCH + id.y * SECOND + 15u] = f16(wa.w);
        w_tile[id.x * W_PITCH + id.y * SECOND + OTHER + 12u] = f16(wb.x);
        w_tile[id.x * W_PITCH + id.y * SECOND + OTHER + 13u] = f16(wb.y);
        w_tile[id.x * W_PITCH + id.y * SECOND + OTHER + 14u] = f16(wb.z);
        w_tile[id.x * W_PITCH + id.y * SECOND + OTHER + 15u] = f16(wb.w);
        let a0 = f16x4(x0.xy);
        let b0 = f16x4(x0.zw);
        x_tile[id.x * 8u + id.y * 1024u + 0u] = a0.x;
        x_tile[id.x * 8u + id.y * 1024u + 1u] = a0.y;
        x_tile[id.x * 8u + id.y * 1024u + 2u] = a0.z;
        x_tile[id.x * 8u + id.y * 1024u + 3u] = a0.w;
        x_tile[id.x * 8u + id.y * 1024u + 4u] = b0.x;
        x_tile[id.x * 8u + id.y * 1024u + 5u] = b0.y;
        x_tile[id.x * 8u + id.y * 1024u + 6u] = b0.z;
        x_tile[id.x * 8u + id.y * 1024u + 7u] = b0.w;
        let a1 = f16x4(x1.xy);
        let b1 = f16x4(x1.zw);
        x_tile[COLUMN + id.x * 8u + id.y * 1024u + 0u] = a1.x;
        x_tile[COLUMN + id.x * 8u + id.y * 1024u + 1u] = a1.y;
        x_tile[COLUMN + id.x * 8u + id.y * 1024u + 2u] = a1.z;
        x_tile[COLUMN + id.x * 8u + id.y * 1024u + 3u] = a1.w;
        x_tile[COLUMN + id.x * 8u + id.y * 1024u + 4u] = b1.x;
        x_tile[COLUMN + id.x * 8u + id.y * 1024u + 5u] = b1.y;
        x_tile[COLUMN + id.x * 8u + id.y * 1024u + 6u] = b1.z;
        x_tile[COLUMN + id.x * 8u + id.y * 1024u + 7u] = b1.w;
        let a2 = f16x4(x2.xy);
        let b2 = f16x4(x2.zw);
        x_tile[2u * COLUMN + id.x * 8u + id.y * 1024u + 0u] = a2.x;
        x_tile[2u * COLUMN + id.x * 8u + id.y * 1024u + 1u] = a2.y;
        x_tile[2u * COLUMN + id.x * 8u + id.y * 1024u + 2u] = a2.z;
        x_tile[2u * COLUMN + id.x * 8u + id.y * 1024u + 3u] = a2.w;
        x_tile[2u * COLUMN + id.x * 8u + id.y * 1024u + 4u] = b2.x;
        x_tile[2u * COLUMN + id.x * 8u + id.y * 1024u + 5u] = b2.y;
        x_tile[2u * COLUMN + id.x * 8u + id.y * 1024u + 6u] = b2.z;
        x_tile[2u * COLUMN + id.x * 8u + id.y * 1024u + 7u] = b2.w;
        let a3 = f16x4(x3.xy);
        let b3 = f16x4(x3.zw);
        x_tile[3u * COLUMN + id.x * 8u + id.y * 1024u + 0u] = a3.x;
        x_tile[3u * COLUMN + id.x * 8u + id.y * 1024u + 1u] = a3.y;
        x_tile[3u * COLUMN + id.x * 8u + id.y * 1024u + 2u] = a3.z;
        x_tile[3u * COLUMN + id.x * 8u + id.y * 1024u + 3u] = a3.w;
        x_tile[3u * COLUMN + id.x * 8u + id.y * 1024u + 4u] = b3.x;
        x_tile[3u * COLUMN + id.x * 8u + id.y * 1024u + 5u] = b3.y;
        x_tile[3u * COLUMN + id.x * 8u + id.y * 1024u + 6u] = b3.z;
        x_tile[3u * COLUMN + id.x * 8u + id.y * 1024u + 7u] = b3.w;
        workgroupBarrier();
        let next = min(step + 1u, end - 1u);
        run = fetch(w, next, id.y);
        x0 = side[x + 128u * next];
        x1 = side[x + 128u * next + 32u];
        x2 = side[x + 128u * next + 64u];
        x3 = side[x + 128u * next + 96u];
        for (var j = 0u; j < 4u; j++) {
            let l0 = subgroupMatrixLoad<Left>(&x_tile, j * COLUMN + down * 16u, false, 16u);
            let l1 = subgroupMatrixLoad<Left>(&x_tile, j * COLUMN + down * 16u + 256u, false, 16u);
            let at = over * W_PITCH + 16u * j;
            let r0 = subgroupMatrixLoad<Right>(&w_tile, at, true, W_PITCH);
            let r1 = subgroupMatrixLoad<Right>(&w_tile, at + 16u * W_PITCH, true, W_PITCH);
            let r2 = subgroupMatrixLoad<Right>(&w_tile, at + 32u * W_PITCH, true, W_PITCH);
            let r3 = subgroupMatrixLoad<Right>(&w_tile, at + 48u * W_PITCH, true, W_PITCH);
            c00 = subgroupMatrixMultiplyAccumulate(l0, r0, c00);
            c10 = subgroupMatrixMultiplyAccumulate(l1, r0, c10);
            c01 = subgroupMatrixMultiplyAccumulate(l0, r1, c01);
            c11 = subgroupMatrixMultiplyAccumulate(l1, r1, c11);
            c02 = subgroupMatrixMultiplyAccumulate(l0, r2, c02);
            c12 = subgroupMatrixMultiplyAccumulate(l1, r2, c12);
            c03 = subgroupMatrixMultiplyAccumulate(l0, r3, c03);
            c13 = subgroupMatrixMultiplyAccumulate(l1, r3, c13);
        }
        workgroupBarrier();
    }
    var t = Target(params.out0 + row0 * params.out0_stride + params.first_row, params.out0_stride, min(n - row0, ROWS));
    if (params.split_steps < params.k / STEP) {
        t.y = params.out1 + group.z * params.out1_stride + row0 * params.cols + params.first_row;
        t.stride = params.cols;
    }
    let o = output0 + over;
    store(c00, t, down, o, s, lane);
    store(c01, t, down, o + 16u, s, lane);
    store(c02, t, down, o + 32u, s, lane);
    store(c03, t, down, o + 48u, s, lane);
    store(c10, t, down + 16u, o, s, lane);
    store(c11, t, down + 16u, o + 16u, s, lane);
    store(c12, t, down + 16u, o + 32u, s, lane);
    store(c13, t, down + 16u, o + 48u, s, lane);
}
