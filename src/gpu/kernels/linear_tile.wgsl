// linear for many rows: a workgroup makes a tile of ROWS rows by OUTS outputs, 16 values of k at a time through
// workgroup memory; a thread makes 8 by 8 of it. GROUPED and splits: see linear_tile8.wgsl.
override GROUPED: bool = false;
const ROWS = 64u;
const OUTS = 128u;
const THREADS = ROWS / 8u * (OUTS / 8u);

@group(0) @binding(4) var<storage, read> side: array<vec4<u32>>;

var<workgroup> x_tile: array<vec4<f32>, ROWS * 4u>; // four values of k each: [row][4]
var<workgroup> w_tile: array<vec4<f32>, OUTS * 4u>; // [output][4]
var<workgroup> row_of: array<u32, ROWS>;            // GROUPED: the pair

// Vector c of a row lies where eight neighbouring rows do not meet in the same banks.
fn place(row: u32, c: u32) -> u32 { return row * 4u + (c ^ ((row >> 1u) & 3u)); }

struct Four { // by value of k, so that a component is an output
    x: vec4<f32>, y: vec4<f32>, z: vec4<f32>, w: vec4<f32>,
}

fn four(o: u32, c: u32) -> Four {
    let a = w_tile[o * 4u + c];
    let b = w_tile[(o + OUTS / 8u) * 4u + c];
    let d = w_tile[(o + OUTS / 8u * 2u) * 4u + c];
    let e = w_tile[(o + OUTS / 8u * 3u) * 4u + c];
    return Four(vec4<f32>(a.x, b.x, d.x, e.x), vec4<f32>(a.y, b.y, d.y, e.y), vec4<f32>(a.z, b.z, d.z, e.z),
                vec4<f32>(a.w, b.w, d.w, e.w));
}

fn mac(sum: vec4<f32>, x: vec4<f32>, w: Four) -> vec4<f32> {
    return fma(vec4<f32>(x.w), w.w, fma(vec4<f32>(x.z), w.z, fma(vec4<f32>(x.y), w.y, fma(vec4<f32>(x.x), w.x, sum))));
}

// Row `at` of the tile; outputs from `output` on, OUTS / 8 apart.
fn put(at: u32, a: vec4<f32>, b: vec4<f32>, count: u32, output: u32, low: u32, high: u32, split: u32) {
    if (at >= count) { return; }
    let row = row_of[at];
    var y = step.out0 + row * step.out0_stride + step.first_row;
    if (GROUPED) {
        y = step.out0 + row / step.experts * step.out0_stride + row % step.experts * step.cols;
    } else if (step.stretch < (step.k + 15u) / 16u) {
        y = step.out1 + split * step.out1_stride + row * step.cols + step.first_row;
    }
    for (var c = 0u; c < 4u; c++) {
        let o = output + c * (OUTS / 8u);
        if (o >= low && o < high) { arena[y + o] = a[c]; }
        if (o + OUTS / 2u >= low && o + OUTS / 2u < high) { arena[y + o + OUTS / 2u] = b[c]; }
    }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    // rows of this tile, and outputs of it that the binding holds: low <= output0 + i < high
    let output0 = group.x * OUTS;
    var first = group.y * ROWS;
    var count = 0u;
    var low = 0u;
    var high = step.row_count;
    var weight0 = 0u; // weight row of output 0; may wrap below 0
    if (GROUPED) {
        let tile = side[step.in2 + group.y]; // expert, first of the list, pairs
        first = tile.y;
        count = select(0u, tile.z, group.y < side[step.in2 - 1u].x);
        let begin = tile.x * step.cols; // weight rows of the expert
        low = select(0u, step.first_row - begin, step.first_row > begin);
        high = select(0u, min(step.first_row + step.row_count - begin, step.cols), step.first_row + step.row_count > begin);
        weight0 = begin - step.first_row;
    } else {
        let n = live_rows();
        count = select(0u, min(n - first, ROWS), n > first);
    }
    if (count == 0u || low >= high || output0 >= high || output0 + OUTS <= low) { return; }
    for (var r = local; r < ROWS; r += THREADS) {
        var row = first + min(r, count - 1u);
        if (GROUPED) { row = side[step.in2_stride + row / 4u][row & 3u]; }
        row_of[r] = row;
    }
    workgroupBarrier();

    let begin = group.z * step.stretch * 16u;
    let end = min(begin + step.stretch * 16u, step.k);
    // 8 by 4 threads of a subgroup of 32, so that they share what they read
    let across = OUTS / 8u;
    let down = ROWS / 8u;
    let tx = (local & 7u) + 8u * ((local >> 5u) % (across / 8u));
    let ty = ((local >> 3u) & 3u) + 4u * ((local >> 5u) / (across / 8u));
    let wz = (tx >> 1u) & 3u;
    let xz = (ty >> 1u) & 3u;
    let odd = xz ^ ((down >> 1u) & 3u); // of rows an odd multiple of `down` away
    var a0 = vec4<f32>();
    var a1 = vec4<f32>();
    var a2 = vec4<f32>();
    var a3 = vec4<f32>();
    var a4 = vec4<f32>();
    var a5 = vec4<f32>();
    var a6 = vec4<f32>();
    var a7 = vec4<f32>();
    var b0 = vec4<f32>();
    var b1 = vec4<f32>();
    var b2 = vec4<f32>();
    var b3 = vec4<f32>();
    var b4 = vec4<f32>();
    var b5 = vec4<f32>();
    var b6 = vec4<f32>();
    var b7 = vec4<f32>();
    for (var k0 = begin; k0 < end; k0 += 16u) {
        for (var i = local; i < OUTS * 2u; i += THREADS) {
            let o = i >> 1u;
            let k = k0 + 8u * (i & 1u);
            wa = vec4<f32>();
            wb = vec4<f32>();
            if (k < step.k) {
                eight((weight0 + clamp(output0 + o, low, high - 1u)) * step.row_bytes, k / 8u);
                if (k + 8u > step.k) { // what lies behind the row counts as nothing
                    let left = vec4<u32>(step.k - k);
                    wa = select(vec4<f32>(), wa, vec4<u32>(0u, 1u, 2u, 3u) < left);
                    wb = select(vec4<f32>(), wb, vec4<u32>(4u, 5u, 6u, 7u) < left);
                }
            }
            w_tile[place(o, 2u * (i & 1u))] = wa;
            w_tile[place(o, 2u * (i & 1u) + 1u)] = wb;
        }
        for (var i = local; i < ROWS * 4u; i += THREADS) {
            let r = i >> 2u;
            let k = k0 + 4u * (i & 3u);
            let row = row_of[r];
            var at = step.in0 + row * step.in0_stride + k;
            if (GROUPED) {
                at = step.in0 + row / step.experts * step.in0_stride + k;
                if (step.slotted == 1u) { at += row % step.experts * step.k; }
            }
            var x = vec4<f32>();
            if (k + 3u < step.k) {
                x = vec4<f32>(arena[at], arena[at + 1u], arena[at + 2u], arena[at + 3u]);
            } else {
                for (var j = 0u; j < 4u; j++) {
                    if (k + j < step.k) { x[j] = arena[at + j]; }
                }
            }
            x_tile[place(r, i & 3u)] = x;
        }
        workgroupBarrier();
        for (var c = 0u; c < 4u; c++) {
            let w = four(tx, c ^ wz);
            let v = four(tx + OUTS / 2u, c ^ wz);
            let at = ty * 4u + (c ^ xz);
            let odd_at = ty * 4u + (c ^ odd);
            let x0 = x_tile[at];
            a0 = mac(a0, x0, w);
            b0 = mac(b0, x0, v);
            let x1 = x_tile[odd_at + down * 4u];
            a1 = mac(a1, x1, w);
            b1 = mac(b1, x1, v);
            if (!GROUPED || count > 2u * down) { // an expert's tile may be far from full, the same for all threads
                let x2 = x_tile[at + down * 8u];
                a2 = mac(a2, x2, w);
                b2 = mac(b2, x2, v);
                let x3 = x_tile[odd_at + down * 12u];
                a3 = mac(a3, x3, w);
                b3 = mac(b3, x3, v);
            }
            if (!GROUPED || count > 4u * down) {
                let x4 = x_tile[at + down * 16u];
                a4 = mac(a4, x4, w);
                b4 = mac(b4, x4, v);
                let x5 = x_tile[odd_at + down * 20u];
                a5 = mac(a5, x5, w);
                b5 = mac(b5, x5, v);
            }
            if (!GROUPED || count > 6u * down) {
                let x6 = x_tile[at + down * 24u];
                a6 = mac(a6, x6, w);
                b6 = mac(b6, x6, v);
                let x7 = x_tile[odd_at + down * 28u];
                a7 = mac(a7, x7, w);
                b7 = mac(b7, x7, v);
            }
        }
        workgroupBarrier();
    }
    let o = output0 + tx;
    put(ty, a0, b0, count, o, low, high, group.z);
    put(ty + down, a1, b1, count, o, low, high, group.z);
    put(ty + 2u * down, a2, b2, count, o, low, high, group.z);
    put(ty + 3u * down, a3, b3, count, o, low, high, group.z);
    put(ty + 4u * down, a4, b4, count, o, low, high, group.z);
    put(ty + 5u * down, a5, b5, count, o, low, high, group.z);
    put(ty + 6u * down, a6, b6, count, o, low, high, group.z);
    put(ty + 7u * down, a7, b7, count, o, low, high, group.z);
}
