// uses: params.product common/pass common/sums4x4
// Shared by the f32 tile kernels: which rows and outputs a workgroup computes, and where they are. product/even_shape
// loads and stores vec4, product/any_shape scalars. The kernel defines GROUPED (rows by expert), K_STEP, x_tile and
// w_tile.
@group(0) @binding(4) var<storage, read> side: array<vec4<u32>>;

struct Tile {
    output0: u32,
    first: u32, count: u32, // rows; GROUPED: indices into the list of pairs
    low: u32, high: u32,    // outputs in this binding: low <= output < high
    weight0: u32,           // weight row of output 0; may wrap below 0
}

fn tile_of(group: vec3<u32>, rows_of_tile: u32, outputs: u32) -> Tile {
    var t = Tile(group.x * outputs, group.y * rows_of_tile, 0u, 0u, params.row_count, 0u);
    if (GROUPED) {
        let listed = side[params.tiles + group.y]; // expert, first of the list, pairs
        t.first = listed.y;
        t.count = select(0u, listed.z, group.y < side[params.tiles - 1u].x);
        let begin = listed.x * params.cols; // weight rows of the expert
        let end = params.first_row + params.row_count;
        t.low = select(0u, params.first_row - begin, params.first_row > begin);
        t.high = select(0u, min(end - begin, params.cols), end > begin);
        t.weight0 = begin - params.first_row;
    } else {
        let n = live_rows();
        t.count = select(0u, min(n - t.first, rows_of_tile), n > t.first);
    }
    if (t.low >= t.high || t.output0 >= t.high || t.output0 + outputs <= t.low) { t.count = 0u; }
    return t;
}

// The row, or pair, at index `at` of the tile; past the end, the last one.
fn row_at(t: Tile, at: u32) -> u32 {
    let row = t.first + min(at, t.count - 1u);
    if (GROUPED) { return side[params.pairs + row / 4u][row & 3u]; }
    return row;
}

fn input_of(row: u32) -> u32 {
    if (GROUPED) {
        return params.in0 + row / params.slots * params.in0_stride + select(0u, row % params.slots * params.k, params.input_per_slot == 1u);
    }
    return params.in0 + row * params.in0_stride;
}

fn output_of(row: u32, split: u32) -> u32 {
    if (GROUPED) { return params.out0 + row / params.slots * params.out0_stride + row % params.slots * params.cols; }
    if (params.split_steps < (params.k + K_STEP - 1u) / K_STEP) { return params.out1 + split * params.out1_stride + row * params.cols + params.first_row; }
    return params.out0 + row * params.out0_stride + params.first_row;
}

// First byte of the weights of output `at`, clamped to the outputs of this binding.
fn weights_of(t: Tile, at: u32) -> u32 { return (t.weight0 + clamp(t.output0 + at, t.low, t.high - 1u)) * params.row_bytes; }

// Four neighboring k of a row or output, into component c of vector `at` of workgroup memory.
fn store_x(v: u32, at: u32, c: u32, x: vec4<f32>) {
    x_tile[v][0][at][c] = x.x;
    x_tile[v][1][at][c] = x.y;
    x_tile[v][2][at][c] = x.z;
    x_tile[v][3][at][c] = x.w;
}

fn store_w(v: u32, at: u32, c: u32, w: vec4<f32>) {
    w_tile[v][0][at][c] = w.x;
    w_tile[v][1][at][c] = w.y;
    w_tile[v][2][at][c] = w.z;
    w_tile[v][3][at][c] = w.w;
}

// Rows from index `at` on, outputs from `output` on.
fn store(t: Tile, s: Sums4x4, at: u32, output: u32, split: u32) {
    if (at < t.count) { store4(t, output_of(row_at(t, at), split), output, s.a); }
    if (at + 1u < t.count) { store4(t, output_of(row_at(t, at + 1u), split), output, s.b); }
    if (at + 2u < t.count) { store4(t, output_of(row_at(t, at + 2u), split), output, s.c); }
    if (at + 3u < t.count) { store4(t, output_of(row_at(t, at + 3u), split), output, s.d); }
}
