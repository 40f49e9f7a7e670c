// uses: params.product common/pass common/arena <tile> type.tile
// linear_tile8: Y = X W^T for more than 8 rows, int8 activations, weights with the integers of their blocks. Prompts.
// X: [rows][k] as product/quantize wrote it (in0: integers, in1: scales); W: [outputs][k] or [expert][outputs][k].
// Products are summed as integers within a group of 32, then scaled.
//
// A workgroup computes a tile of ROWS rows by OUTS outputs (<tile>), 64 values of k at a time through workgroup memory,
// while the next are loaded; a thread computes 8 rows by 4 outputs.
//
// GROUPED: a tile holds rows that chose the same expert, as product/group_pairs lists them (`tiles` and `pairs` of the side
// buffer). With several splits (group.z) each takes `split_steps` steps of k and
// leaves partial sums at out1 for product/split_sum.
const THREADS = ROWS / 8u * (OUTS / 4u);
const X_EACH = 128u / OUTS;                             // vectors of activations that a thread loads: 1 or 2
const W_EACH = (OUTS * PARTS + THREADS - 1u) / THREADS; // parts of weight rows: 1, 2 or 4

@group(0) @binding(4) var<storage, read> side: array<vec4<u32>>;

var<workgroup> x_tile: array<vec4<u32>, ROWS * 4u>;  // [row][4], 16 integers per vector
var<workgroup> x_scale: array<vec2<f32>, ROWS * 2u>; // [row][2]: scale and sum of a group of 32
var<workgroup> row_of: array<u32, ROWS>;             // GROUPED: pair

fn products(xa: vec4<u32>, wa: vec4<u32>) -> i32 {
    return dot4I8Packed(xa.x, wa.x) + dot4I8Packed(xa.y, wa.y) + dot4I8Packed(xa.z, wa.z) + dot4I8Packed(xa.w, wa.w);
}

struct Four { // the same group of 32 of four outputs
    a0: vec4<u32>, a1: vec4<u32>, a2: vec4<u32>, a3: vec4<u32>, // first 16 integers
    b0: vec4<u32>, b1: vec4<u32>, b2: vec4<u32>, b3: vec4<u32>, // last 16
    scale: vec4<f32>,
    other: vec4<u32>, // minima (as bits), or two scales of 16 (low and high half)
}

fn mac(sum: vec4<f32>, row: u32, part: u32, swizzle: u32, w: Four) -> vec4<f32> {
    let xa = x_tile[row * 4u + ((2u * part) ^ swizzle)];
    let xb = x_tile[row * 4u + ((2u * part + 1u) ^ swizzle)];
    let s = x_scale[row * 2u + part];
    let a = vec4<i32>(products(xa, w.a0), products(xa, w.a1), products(xa, w.a2), products(xa, w.a3));
    let b = vec4<i32>(products(xb, w.b0), products(xb, w.b1), products(xb, w.b2), products(xb, w.b3));
    if (TWO_SCALES) {
        let o = bitcast<vec4<i32>>(w.other);
        let both = a * ((o << vec4<u32>(16u)) >> vec4<u32>(16u)) + b * (o >> vec4<u32>(16u));
        return sum + s.x * w.scale * vec4<f32>(both);
    }
    if (HAS_MIN) {
        return sum + s.x * w.scale * vec4<f32>(a + b) - s.y * bitcast<vec4<f32>>(w.other);
    }
    return sum + s.x * w.scale * vec4<f32>(a + b);
}

// What a thread loads of a step. Single variables: an array would lie in memory.
struct Fetched {
    x0: vec4<u32>, x1: vec4<u32>, scale: vec4<u32>,
    w0: Raw, w1: Raw, w2: Raw, w3: Raw,
}

struct Offsets { // where it loads from
    x0: u32, x1: u32, scale: u32,          // activations of step 0, as vectors of the side buffer
    w0: u32, w1: u32, w2: u32, w3: u32,    // weight rows
    part: u32,                             // of all four
}

fn fetch_step(s: u32, at: Offsets) -> Fetched {
    var f: Fetched;
    f.x0 = side[at.x0 + s * 4u];
    if (X_EACH > 1u) { f.x1 = side[at.x1 + s * 4u]; }
    f.scale = side[at.scale + s];
    f.w0 = fetch(at.w0, s, at.part);
    if (W_EACH > 1u) { f.w1 = fetch(at.w1, s, at.part); }
    if (W_EACH > 2u) {
        f.w2 = fetch(at.w2, s, at.part);
        f.w3 = fetch(at.w3, s, at.part);
    }
    return f;
}

// The row of activations for row r of the tile.
fn input_of(r: u32) -> u32 {
    let row = row_of[r];
    if (GROUPED && params.input_per_slot == 0u) { return row / max(params.slots, 1u); }
    return row;
}

// Row `at` of the tile; outputs `output` + c * OUTS / 4.
fn store(at: u32, sum: vec4<f32>, count: u32, output: u32, low: u32, high: u32, split: u32) {
    if (at >= count) { return; }
    let row = row_of[at];
    var y = params.out0 + row * params.out0_stride + params.first_row;
    if (GROUPED) {
        y = params.out0 + row / params.slots * params.out0_stride + row % params.slots * params.cols;
    } else if (params.split_steps < (params.k + 63u) / 64u) {
        y = params.out1 + split * params.out1_stride + row * params.cols + params.first_row;
    }
    for (var c = 0u; c < 4u; c++) {
        let o = output + c * (OUTS / 4u);
        if (o >= low && o < high) { arena[y + o] = sum[c]; }
    }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    // rows of this tile, and its outputs in this binding: low <= output < high
    let output0 = group.x * OUTS;
    var first = group.y * ROWS;
    var count = 0u;
    var low = 0u;
    var high = params.row_count;
    var weight0 = 0u; // weight row of output 0; may wrap below 0
    if (GROUPED) {
        let tile = side[params.tiles + group.y]; // expert, first of the list, pairs
        first = tile.y;
        count = select(0u, tile.z, group.y < side[params.tiles - 1u].x);
        let begin = tile.x * params.cols; // weight rows of the expert
        low = select(0u, params.first_row - begin, params.first_row > begin);
        high = select(0u, min(params.first_row + params.row_count - begin, params.cols), params.first_row + params.row_count > begin);
        weight0 = begin - params.first_row;
    } else {
        let n = live_rows();
        count = select(0u, min(n - first, ROWS), n > first);
    }
    if (count == 0u || low >= high || output0 >= high || output0 + OUTS <= low) { return; }
    for (var r = local; r < ROWS; r += THREADS) {
        var row = first + min(r, count - 1u);
        if (GROUPED) { row = side[params.pairs + row / 4u][row & 3u]; }
        row_of[r] = row;
    }
    workgroupBarrier();

    let steps = (params.k + 63u) / 64u;
    let begin = group.z * params.split_steps;
    let end = min(begin + params.split_steps, steps);
    // 8 by 4 threads of a subgroup of 32, so that they share their loads
    let across = OUTS / 4u;
    let tx = (local & 7u) + 8u * ((local >> 5u) % (across / 8u));
    let ty = ((local >> 3u) & 3u) + 4u * ((local >> 5u) / (across / 8u));
    let down = ROWS / 8u;
    let wz = (tx >> 1u) & 3u;
    let xz = (ty >> 1u) & 3u;
    let odd = xz ^ ((down >> 1u) & 3u); // for rows an odd multiple of `down` away
    // a thread's rows and outputs are THREADS / 4 and THREADS / PARTS apart
    let x_row = local >> 2u;
    let x_slot = x_row * 4u + ((local & 3u) ^ ((x_row >> 1u) & 3u)); // for row + THREADS / 4: x_slot + THREADS
    let first_out = local / PARTS;
    var at: Offsets;
    at.x0 = params.in0 + input_of(x_row) * steps * 4u + (local & 3u);
    at.x1 = params.in0 + input_of(min(x_row + THREADS / 4u, ROWS - 1u)) * steps * 4u + (local & 3u);
    at.scale = params.in1 + input_of(min(local, ROWS - 1u)) * steps;
    at.w0 = weight0 + clamp(output0 + min(first_out, OUTS - 1u), low, high - 1u);
    at.w1 = weight0 + clamp(output0 + first_out + THREADS / PARTS, low, high - 1u);
    at.w2 = weight0 + clamp(output0 + first_out + 2u * THREADS / PARTS, low, high - 1u);
    at.w3 = weight0 + clamp(output0 + first_out + 3u * THREADS / PARTS, low, high - 1u);
    at.part = local % PARTS;
    var next = fetch_step(begin, at);
    var s0 = vec4<f32>();
    var s1 = vec4<f32>();
    var s2 = vec4<f32>();
    var s3 = vec4<f32>();
    var s4 = vec4<f32>();
    var s5 = vec4<f32>();
    var s6 = vec4<f32>();
    var s7 = vec4<f32>();
    for (var s = begin; s < end; s++) {
        x_tile[x_slot] = next.x0;
        if (X_EACH > 1u) { x_tile[x_slot + THREADS] = next.x1; }
        if (local < ROWS) {
            let scales = bitcast<vec4<f32>>(next.scale);
            x_scale[local * 2u] = scales.xy;
            x_scale[local * 2u + 1u] = scales.zw;
        }
        if (first_out < OUTS) { unpack(first_out, s, at.part, next.w0); }
        if (W_EACH > 1u) { unpack(first_out + THREADS / PARTS, s, at.part, next.w1); }
        if (W_EACH > 2u) {
            unpack(first_out + 2u * THREADS / PARTS, s, at.part, next.w2);
            unpack(first_out + 3u * THREADS / PARTS, s, at.part, next.w3);
        }
        workgroupBarrier();
        if (s + 1u < end) { next = fetch_step(s + 1u, at); }
        for (var part = 0u; part < 2u; part++) {
            var w: Four;
            let o0 = tx;
            let o1 = tx + across;
            let o2 = tx + 2u * across;
            let o3 = tx + 3u * across;
            let a = (2u * part) ^ wz;
            let b = (2u * part + 1u) ^ wz;
            w.a0 = w_tile[o0 * 4u + a];
            w.b0 = w_tile[o0 * 4u + b];
            w.a1 = w_tile[o1 * 4u + a];
            w.b1 = w_tile[o1 * 4u + b];
            w.a2 = w_tile[o2 * 4u + a];
            w.b2 = w_tile[o2 * 4u + b];
            w.a3 = w_tile[o3 * 4u + a];
            w.b3 = w_tile[o3 * 4u + b];
            let m0 = w_scale[o0 * 2u + part];
            let m1 = w_scale[o1 * 2u + part];
            let m2 = w_scale[o2 * 2u + part];
            let m3 = w_scale[o3 * 2u + part];
            w.scale = bitcast<vec4<f32>>(vec4<u32>(m0.x, m1.x, m2.x, m3.x));
            w.other = vec4<u32>(m0.y, m1.y, m2.y, m3.y);
            s0 = mac(s0, ty, part, xz, w);
            if (PARTIAL && count <= down) { continue; } // uniform
            s1 = mac(s1, ty + down, part, odd, w);
            if (PARTIAL && count <= 2u * down) { continue; }
            s2 = mac(s2, ty + 2u * down, part, xz, w);
            if (PARTIAL && count <= 3u * down) { continue; }
            s3 = mac(s3, ty + 3u * down, part, odd, w);
            if (PARTIAL && count <= 4u * down) { continue; }
            s4 = mac(s4, ty + 4u * down, part, xz, w);
            if (PARTIAL && count <= 5u * down) { continue; }
            s5 = mac(s5, ty + 5u * down, part, odd, w);
            if (PARTIAL && count <= 6u * down) { continue; }
            s6 = mac(s6, ty + 6u * down, part, xz, w);
            if (PARTIAL && count <= 7u * down) { continue; }
            s7 = mac(s7, ty + 7u * down, part, odd, w);
        }
        workgroupBarrier();
    }
    let o = output0 + tx;
    store(ty, s0, count, o, low, high, group.z);
    store(ty + down, s1, count, o, low, high, group.z);
    store(ty + 2u * down, s2, count, o, low, high, group.z);
    store(ty + 3u * down, s3, count, o, low, high, group.z);
    store(ty + 4u * down, s4, count, o, low, high, group.z);
    store(ty + 5u * down, s5, count, o, low, high, group.z);
    store(ty + 6u * down, s6, count, o, low, high, group.z);
    store(ty + 7u * down, s7, count, o, low, high, group.z);
}
