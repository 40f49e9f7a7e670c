// uses: params.tower common/pass common/arena4 tower/clamp
// tower_attend: y = clamp(softmax(q K^T) V), every row sees all rows. Vision encoder.
// q, K, V: [rows][heads][HEAD] (in0, in1, in2); y: [rows][heads][HEAD].
//
// A workgroup takes ROWS rows of one head and walks over the keys, KEYS at a time; a thread computes 8 rows by 8 keys
// of scores, then 8 rows by 8 columns of the result. Both products go through workgroup memory in slices of SLICE
// vectors, of the head for scores, of the keys for the result; the next slice is loaded while one is multiplied.
const LOWEST = -3.0e38;
override HEAD: u32 = 64u;        // a multiple of 4, at most 96
override ROW_THREADS: u32 = 16u; // threads over the rows
override SLICE: u32 = 4u;        // divides COLS, at most COL_THREADS
override COL_THREADS: u32 = (HEAD + 7u) / 8u;      // threads over keys and columns
override COLS: u32 = 2u * COL_THREADS; // vectors of a head, and of KEYS
override KEYS: u32 = 8u * COL_THREADS;
override ROWS: u32 = 8u * ROW_THREADS;
override THREADS: u32 = ROW_THREADS * COL_THREADS;
override PITCH: u32 = SLICE | 1u; // odd, so that neighbors do not share banks
override WIDE: u32 = (COL_THREADS + 3u) / 4u * 4u; // length of a row of values that threads exchange
override Q_PARTS: u32 = (ROWS * SLICE + THREADS - 1u) / THREADS; // vectors that a thread loads; at most 8
override K_PARTS: u32 = (KEYS * SLICE + THREADS - 1u) / THREADS; // at most 4

var<workgroup> left: array<vec4<f32>, ROWS * PITCH>;                          // queries or weights: [row][slice]
var<workgroup> right: array<vec4<f32>, max(KEYS * PITCH, 4u * SLICE * COLS)>; // keys [key][slice], or values [key][COLS]
var<workgroup> best: array<f32, ROWS>;                                        // largest score of a row so far
var<workgroup> rescale: array<f32, ROWS>;                                      // factor for its sums when a larger one is found

fn mac(sum: vec4<f32>, x: vec4<f32>, a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>) -> vec4<f32> {
    return fma(vec4<f32>(x.w), d, fma(vec4<f32>(x.z), c, fma(vec4<f32>(x.y), b, fma(vec4<f32>(x.x), a, sum))));
}

fn fetch(base: u32, row: u32, stride: u32, at: u32) -> vec4<f32> {
    if (at < HEAD / 4u) { return arena4[base + row * (stride / 4u) + at]; }
    return vec4<f32>();
}

@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let n = live_rows();
    let row0 = group.y * ROWS;
    if (row0 >= n) { return; }
    let head = group.x * (HEAD / 4u);
    let q = params.in0 / 4u + head;
    let k = params.in1 / 4u + head;
    let v = params.in2 / 4u + head;
    let tx = local % COL_THREADS;
    let ty = local / COL_THREADS;
    for (var r = local; r < ROWS; r += THREADS) { best[r] = LOWEST; }
    var sum: array<f32, 8>;
    var out: array<vec4<f32>, 16>;    // [row][2]: columns tx and COL_THREADS + tx
    var next_q: array<vec4<f32>, 8>;
    var next_kv: array<vec4<f32>, 4>;
    for (var i = 0u; i < 8u; i++) { sum[i] = 0.0; }
    for (var i = 0u; i < 16u; i++) { out[i] = vec4<f32>(); }
    for (var e = 0u; e < Q_PARTS; e++) {
        let i = local + e * THREADS;
        next_q[e] = fetch(q, min(row0 + i / SLICE, n - 1u), params.in0_stride, i % SLICE);
    }
    for (var e = 0u; e < K_PARTS; e++) {
        let i = local + e * THREADS;
        next_kv[e] = fetch(k, min(i / SLICE, n - 1u), params.in1_stride, i % SLICE);
    }
    for (var j = 0u; j < n; j += KEYS) {
        var s: array<vec4<f32>, 16>;  // [row][2]: keys tx + COL_THREADS * (0..3), (4..7)
        for (var i = 0u; i < 16u; i++) { s[i] = vec4<f32>(); }
        for (var c = 0u; c < COLS; c += SLICE) {
            workgroupBarrier();
            for (var e = 0u; e < Q_PARTS; e++) {
                let i = local + e * THREADS;
                if (i < ROWS * SLICE) { left[i / SLICE * PITCH + i % SLICE] = next_q[e]; }
            }
            for (var e = 0u; e < K_PARTS; e++) {
                let i = local + e * THREADS;
                if (i < KEYS * SLICE) { right[i / SLICE * PITCH + i % SLICE] = next_kv[e]; }
            }
            workgroupBarrier();
            if (c + SLICE < COLS) {
                for (var e = 0u; e < Q_PARTS; e++) {
                    let i = local + e * THREADS;
                    next_q[e] = fetch(q, min(row0 + i / SLICE, n - 1u), params.in0_stride, c + SLICE + i % SLICE);
                }
                for (var e = 0u; e < K_PARTS; e++) {
                    let i = local + e * THREADS;
                    next_kv[e] = fetch(k, min(j + i / SLICE, n - 1u), params.in1_stride, c + SLICE + i % SLICE);
                }
            } else { // load the first values
                for (var e = 0u; e < K_PARTS; e++) {
                    let i = local + e * THREADS;
                    next_kv[e] = fetch(v, min(j + i / COLS, n - 1u), params.in2_stride, i % COLS);
                }
            }
            for (var t = 0u; t < SLICE; t++) {
                let a0 = right[tx * PITCH + t];
                let a1 = right[(tx + COL_THREADS) * PITCH + t];
                let a2 = right[(tx + COL_THREADS * 2u) * PITCH + t];
                let a3 = right[(tx + COL_THREADS * 3u) * PITCH + t];
                let a4 = right[(tx + COL_THREADS * 4u) * PITCH + t];
                let a5 = right[(tx + COL_THREADS * 5u) * PITCH + t];
                let a6 = right[(tx + COL_THREADS * 6u) * PITCH + t];
                let a7 = right[(tx + COL_THREADS * 7u) * PITCH + t];
                for (var i = 0u; i < 8u; i++) {
                    let x = left[(ty + ROW_THREADS * i) * PITCH + t];
                    s[2u * i] = mac(s[2u * i], x, vec4<f32>(a0.x, a1.x, a2.x, a3.x), vec4<f32>(a0.y, a1.y, a2.y, a3.y),
                                    vec4<f32>(a0.z, a1.z, a2.z, a3.z), vec4<f32>(a0.w, a1.w, a2.w, a3.w));
                    s[2u * i + 1u] = mac(s[2u * i + 1u], x, vec4<f32>(a4.x, a5.x, a6.x, a7.x), vec4<f32>(a4.y, a5.y, a6.y, a7.y),
                                         vec4<f32>(a4.z, a5.z, a6.z, a7.z), vec4<f32>(a4.w, a5.w, a6.w, a7.w));
                }
            }
        }
        if (j + KEYS > n) {
            let key = vec4<u32>(j + tx) + COL_THREADS * vec4<u32>(0u, 1u, 2u, 3u);
            for (var i = 0u; i < 8u; i++) {
                s[2u * i] = select(vec4<f32>(LOWEST), s[2u * i], key < vec4<u32>(n));
                s[2u * i + 1u] = select(vec4<f32>(LOWEST), s[2u * i + 1u], key + 4u * COL_THREADS < vec4<u32>(n));
            }
        }
        workgroupBarrier();
        for (var i = 0u; i < 8u; i++) { // largest of each thread, then of each row
            let high = max(s[2u * i], s[2u * i + 1u]);
            let at = (ty + ROW_THREADS * i) * WIDE + tx;
            left[at / 4u][at % 4u] = max(max(high.x, high.y), max(high.z, high.w));
        }
        workgroupBarrier();
        for (var r = local; r < ROWS; r += THREADS) {
            let before = best[r];
            var high = before;
            for (var i = 0u; i < COL_THREADS; i++) { high = max(high, left[(r * WIDE + i) / 4u][i % 4u]); }
            best[r] = high;
            rescale[r] = exp(max(before - high, -80.0));
        }
        workgroupBarrier();
        for (var i = 0u; i < 8u; i++) {
            let high = vec4<f32>(best[ty + ROW_THREADS * i]);
            let less = rescale[ty + ROW_THREADS * i];
            s[2u * i] = exp(max(s[2u * i] - high, vec4<f32>(-80.0)));
            s[2u * i + 1u] = exp(max(s[2u * i + 1u] - high, vec4<f32>(-80.0)));
            sum[i] = sum[i] * less + dot(s[2u * i] + s[2u * i + 1u], vec4<f32>(1.0));
            out[2u * i] *= less;
            out[2u * i + 1u] *= less;
        }
        for (var c = 0u; c < COLS; c += SLICE) {
            workgroupBarrier();
            for (var p = 0u; p < 8u; p++) {
                let at = tx + COL_THREADS * p - 4u * c; // wraps for keys before the slice
                if (at < 4u * SLICE) {
                    for (var i = 0u; i < 8u; i++) {
                        left[(ty + ROW_THREADS * i) * PITCH + at / 4u][at % 4u] = s[2u * i + p / 4u][p % 4u];
                    }
                }
            }
            for (var e = 0u; e < K_PARTS; e++) {
                let i = local + e * THREADS;
                if (i < 4u * SLICE * COLS) { right[i] = next_kv[e]; }
            }
            workgroupBarrier();
            if (c + SLICE < COLS) {
                for (var e = 0u; e < K_PARTS; e++) {
                    let i = local + e * THREADS;
                    next_kv[e] = fetch(v, min(j + 4u * (c + SLICE) + i / COLS, n - 1u), params.in2_stride, i % COLS);
                }
            } else { // load the next keys
                for (var e = 0u; e < Q_PARTS; e++) {
                    let i = local + e * THREADS;
                    next_q[e] = fetch(q, min(row0 + i / SLICE, n - 1u), params.in0_stride, i % SLICE);
                }
                for (var e = 0u; e < K_PARTS; e++) {
                    let i = local + e * THREADS;
                    next_kv[e] = fetch(k, min(j + KEYS + i / SLICE, n - 1u), params.in1_stride, i % SLICE);
                }
            }
            for (var t = 0u; t < SLICE; t++) {
                let at = 4u * t * COLS + tx;
                let a0 = right[at];
                let a1 = right[at + COLS];
                let a2 = right[at + 2u * COLS];
                let a3 = right[at + 3u * COLS];
                let b0 = right[at + COL_THREADS];
                let b1 = right[at + COL_THREADS + COLS];
                let b2 = right[at + COL_THREADS + 2u * COLS];
                let b3 = right[at + COL_THREADS + 3u * COLS];
                for (var i = 0u; i < 8u; i++) {
                    let x = left[(ty + ROW_THREADS * i) * PITCH + t];
                    out[2u * i] = mac(out[2u * i], x, a0, a1, a2, a3);
                    out[2u * i + 1u] = mac(out[2u * i + 1u], x, b0, b1, b2, b3);
                }
            }
        }
    }
    workgroupBarrier();
    for (var i = 0u; i < 8u; i++) {
        let at = (ty + ROW_THREADS * i) * WIDE + tx;
        left[at / 4u][at % 4u] = sum[i];
    }
    workgroupBarrier();
    for (var i = 0u; i < 8u; i++) {
        let row = row0 + ty + ROW_THREADS * i;
        var whole = 0.0;
        for (var t = 0u; t < COL_THREADS; t++) {
            let at = (ty + ROW_THREADS * i) * WIDE + t;
            whole += left[at / 4u][at % 4u];
        }
        let y = (params.out0 + row * params.out0_stride) / 4u + head + tx;
        if (row < n) {
            arena4[y] = clamp4(out[2u * i] / whole, vec2<f32>(params.low0, params.high0));
            if (tx + COL_THREADS < HEAD / 4u) { arena4[y + COL_THREADS] = clamp4(out[2u * i + 1u] / whole, vec2<f32>(params.low0, params.high0)); }
        }
    }
}
