// uses: common/matrices params.tower common/pass common/arena4 tower/clamp
// tower_attend_matrix: y = clamp(softmax(q K^T) V) for heads of 64, on subgroup matrices. Vision encoder on devices
// that have them.
// q, K, V: [rows][heads][64] in f16 slabs of the side buffer (product/to_f16); y: [rows][heads][64] f32.
//
// A workgroup takes 128 rows of one head, 32 per subgroup and one per thread, and walks over the keys, 32 at a time:
// scores as matrices, a thread's own row of them as exponentials, these as matrices again.
//
// Matrices cannot be scaled in place. So exponentials are relative to a row's `best`, which follows the largest score
// only when that is STEP above it: they stay far below the f16 range, and sums are rescaled, through workgroup memory,
// a few times in all.
const LOWEST = -3.0e38;
const STEP = 8.0;
const LOG2E = 1.4426950408889634;
const SCORE_PITCH = 36u;   // pitch of a row of scores
const WEIGHT_PITCH = 40u;  // pitch of a row of weights
const SCORE_LOWER = 576u;  // 16 * SCORE_PITCH
const WEIGHT_LOWER = 640u; // 16 * WEIGHT_PITCH

@group(0) @binding(3) var<storage, read> side: array<vec4<u32>>;

var<workgroup> keys: array<array<f16, SLAB>, 4>;   // [16 values of the head][32 keys]
var<workgroup> values: array<array<f16, SLAB>, 8>; // double-buffered
var<workgroup> scores: array<array<f32, 1152>, 4>; // per subgroup: 32 rows of scores, or sums to be rescaled
var<workgroup> weights: array<array<f16, 1280>, 4>;
var<workgroup> moves: array<u32, 4>; // 1: a row of the subgroup has a new `best`

// What a thread loads: its key of one slab, its value of one.
var<private> k0: vec4<u32>;
var<private> k1: vec4<u32>;
var<private> v0: vec4<u32>;
var<private> v1: vec4<u32>;

fn fetch(at: u32) {
    k0 = side[params.in1 + at];
    k1 = side[params.in1 + at + 32u];
    v0 = side[params.in2 + at];
    v1 = side[params.in2 + at + 32u];
}

fn store_key(slab: u32, at: u32, low: vec4<u32>, high: vec4<u32>) {
    let a = f16x4(low.xy);
    let b = f16x4(low.zw);
    let c = f16x4(high.xy);
    let d = f16x4(high.zw);
    keys[slab][at] = a.x;
    keys[slab][at + 1u] = a.y;
    keys[slab][at + 2u] = a.z;
    keys[slab][at + 3u] = a.w;
    keys[slab][at + 4u] = b.x;
    keys[slab][at + 5u] = b.y;
    keys[slab][at + 6u] = b.z;
    keys[slab][at + 7u] = b.w;
    keys[slab][at + 8u] = c.x;
    keys[slab][at + 9u] = c.y;
    keys[slab][at + 10u] = c.z;
    keys[slab][at + 11u] = c.w;
    keys[slab][at + 12u] = d.x;
    keys[slab][at + 13u] = d.y;
    keys[slab][at + 14u] = d.z;
    keys[slab][at + 15u] = d.w;
}

fn store_value(slab: u32, at: u32) {
    let a = f16x4(v0.xy);
    let b = f16x4(v0.zw);
    let c = f16x4(v1.xy);
    let d = f16x4(v1.zw);
    values[slab][at] = a.x;
    values[slab][at + 1u] = a.y;
    values[slab][at + 2u] = a.z;
    values[slab][at + 3u] = a.w;
    values[slab][at + 4u] = b.x;
    values[slab][at + 5u] = b.y;
    values[slab][at + 6u] = b.z;
    values[slab][at + 7u] = b.w;
    values[slab][at + 8u] = c.x;
    values[slab][at + 9u] = c.y;
    values[slab][at + 10u] = c.z;
    values[slab][at + 11u] = c.w;
    values[slab][at + 12u] = d.x;
    values[slab][at + 13u] = d.y;
    values[slab][at + 14u] = d.z;
    values[slab][at + 15u] = d.w;
}

fn score4(s: u32, at: u32) -> vec4<f32> { return vec4<f32>(scores[s][at], scores[s][at + 1u], scores[s][at + 2u], scores[s][at + 3u]); }

fn store_scores(s: u32, at: u32, v: vec4<f32>) {
    scores[s][at] = v.x;
    scores[s][at + 1u] = v.y;
    scores[s][at + 2u] = v.z;
    scores[s][at + 3u] = v.w;
}

// Exponentials of four scores, kept as f16.
fn weights4(s: u32, at: u32, score: vec4<f32>, best: f32) -> vec4<f32> {
    let e = exp2(max(fma(score, vec4<f32>(LOG2E), vec4<f32>(-LOG2E * best)), vec4<f32>(-100.0)));
    let h = vec4<f16>(e);
    weights[s][at] = h.x;
    weights[s][at + 1u] = h.y;
    weights[s][at + 2u] = h.z;
    weights[s][at + 3u] = h.w;
    return e;
}

fn masked(score: vec4<f32>, key: u32, n: u32) -> vec4<f32> {
    return select(vec4<f32>(LOWEST), score, vec4<u32>(key) + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(n));
}

fn store(s: u32, lane: u32, row: u32, column: u32, sum: f32) {
    let y = (params.out0 + row * params.out0_stride + column) / 4u;
    for (var i = 0u; i < 8u; i++) { arena4[y + i] = clamp4(score4(s, lane * SCORE_PITCH + 4u * i) / sum, vec2<f32>(params.low0, params.high0)); }
}

@compute @workgroup_size(32, 4)
fn main(@builtin(local_invocation_id) id: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {
    let n = live_rows();
    let row0 = group.y * 128u;
    if (row0 >= n) { return; }
    let s = id.y;
    let deep = params.cols * 4u;                        // vectors per 32 rows
    let here = (group.x * 4u + s) * 64u + id.x;       // this thread's vector of them
    let last = (n - 1u) / 32u * deep + here;
    let query = params.in0 + (row0 / 32u + s) * deep + group.x * 256u + id.x;
    store_key(id.y, id.x * PITCH, side[query], side[query + 32u]);
    workgroupBarrier();
    let q00 = subgroupMatrixLoad<Left>(&keys[s], 0u, false, PITCH);
    let q10 = subgroupMatrixLoad<Left>(&keys[s], LOWER, false, PITCH);
    workgroupBarrier();
    store_key(id.y, id.x * PITCH, side[query + 64u], side[query + 96u]);
    workgroupBarrier();
    let q01 = subgroupMatrixLoad<Left>(&keys[s], 0u, false, PITCH);
    let q11 = subgroupMatrixLoad<Left>(&keys[s], LOWER, false, PITCH);
    workgroupBarrier();
    store_key(id.y, id.x * PITCH, side[query + 128u], side[query + 160u]);
    workgroupBarrier();
    let q02 = subgroupMatrixLoad<Left>(&keys[s], 0u, false, PITCH);
    let q12 = subgroupMatrixLoad<Left>(&keys[s], LOWER, false, PITCH);
    workgroupBarrier();
    store_key(id.y, id.x * PITCH, side[query + 192u], side[query + 224u]);
    workgroupBarrier();
    let q03 = subgroupMatrixLoad<Left>(&keys[s], 0u, false, PITCH);
    let q13 = subgroupMatrixLoad<Left>(&keys[s], LOWER, false, PITCH);
    workgroupBarrier();

    var o00 = Sums();
    var o01 = Sums();
    var o02 = Sums();
    var o03 = Sums();
    var o10 = Sums();
    var o11 = Sums();
    var o12 = Sums();
    var o13 = Sums();
    var best = LOWEST;
    var sum = 0.0;
    fetch(here);
    store_key(id.y, id.x * PITCH, k0, k1);
    store_value(id.y, id.x * PITCH);
    fetch(min(here + deep, last));
    workgroupBarrier();
    // One iteration more than there are keys, which uses the last values; its scores are unused.
    for (var j = 0u; j < n + 32u; j += 32u) {
        if (j > 0u) { // the scores of the previous iteration
            let before = j - 32u;
            workgroupBarrier();
            store_key(id.y, id.x * PITCH, k0, k1);
            if (j + id.x >= n) { // past the end: 0 times it must be 0
                v0 = vec4<u32>();
                v1 = vec4<u32>();
            }
            store_value(id.y + (j & 32u) / 8u, id.x * PITCH);
            fetch(min(here + (j / 32u + 1u) * deep, last));
            let at = id.x * SCORE_PITCH;
            var a = score4(id.y, at);
            var b = score4(id.y, at + 4u);
            var c = score4(id.y, at + 8u);
            var d = score4(id.y, at + 12u);
            var e = score4(id.y, at + 16u);
            var f = score4(id.y, at + 20u);
            var g = score4(id.y, at + 24u);
            var h = score4(id.y, at + 28u);
            if (j > n) {
                a = masked(a, before, n);
                b = masked(b, before + 4u, n);
                c = masked(c, before + 8u, n);
                d = masked(d, before + 12u, n);
                e = masked(e, before + 16u, n);
                f = masked(f, before + 20u, n);
                g = masked(g, before + 24u, n);
                h = masked(h, before + 28u, n);
            }
            let high4 = max(max(max(a, b), max(c, d)), max(max(e, f), max(g, h)));
            let high = max(max(high4.x, high4.y), max(high4.z, high4.w));
            var rescale = 1.0;
            if (high > best + STEP) {
                rescale = exp(max(best - high, -80.0));
                best = high;
            }
            let to = id.x * WEIGHT_PITCH;
            var all = weights4(id.y, to, a, best);
            all += weights4(id.y, to + 4u, b, best);
            all += weights4(id.y, to + 8u, c, best);
            all += weights4(id.y, to + 12u, d, best);
            all += weights4(id.y, to + 16u, e, best);
            all += weights4(id.y, to + 20u, f, best);
            all += weights4(id.y, to + 24u, g, best);
            all += weights4(id.y, to + 28u, h, best);
            sum = sum * rescale + dot(all, vec4<f32>(1.0));
            let moved = subgroupAny(rescale != 1.0 && before > 0u);
            if (id.x == 0u) { moves[id.y] = select(0u, 1u, moved); }
            let any = workgroupUniformLoad(&moves);
            if ((any[0] | any[1] | any[2] | any[3]) != 0u) {
                for (var half = 0u; half < 2u; half++) {
                    if (half == 0u) {
                        subgroupMatrixStore(&scores[s], 0u, o00, false, SCORE_PITCH);
                        subgroupMatrixStore(&scores[s], 16u, o01, false, SCORE_PITCH);
                        subgroupMatrixStore(&scores[s], SCORE_LOWER, o10, false, SCORE_PITCH);
                        subgroupMatrixStore(&scores[s], SCORE_LOWER + 16u, o11, false, SCORE_PITCH);
                    } else {
                        subgroupMatrixStore(&scores[s], 0u, o02, false, SCORE_PITCH);
                        subgroupMatrixStore(&scores[s], 16u, o03, false, SCORE_PITCH);
                        subgroupMatrixStore(&scores[s], SCORE_LOWER, o12, false, SCORE_PITCH);
                        subgroupMatrixStore(&scores[s], SCORE_LOWER + 16u, o13, false, SCORE_PITCH);
                    }
                    workgroupBarrier();
                    for (var i = 0u; i < 32u; i += 4u) { store_scores(id.y, at + i, rescale * score4(id.y, at + i)); }
                    workgroupBarrier();
                    if (half == 0u) {
                        o00 = subgroupMatrixLoad<Sums>(&scores[s], 0u, false, SCORE_PITCH);
                        o01 = subgroupMatrixLoad<Sums>(&scores[s], 16u, false, SCORE_PITCH);
                        o10 = subgroupMatrixLoad<Sums>(&scores[s], SCORE_LOWER, false, SCORE_PITCH);
                        o11 = subgroupMatrixLoad<Sums>(&scores[s], SCORE_LOWER + 16u, false, SCORE_PITCH);
                    } else {
                        o02 = subgroupMatrixLoad<Sums>(&scores[s], 0u, false, SCORE_PITCH);
                        o03 = subgroupMatrixLoad<Sums>(&scores[s], 16u, false, SCORE_PITCH);
                        o12 = subgroupMatrixLoad<Sums>(&scores[s], SCORE_LOWER, false, SCORE_PITCH);
                        o13 = subgroupMatrixLoad<Sums>(&scores[s], SCORE_LOWER + 16u, false, SCORE_PITCH);
                    }
                    workgroupBarrier();
                }
            }
            let first = (before & 32u) / 8u;
            for (var t = 0u; t < 2u; t++) { // 16 of the keys
                let l0 = subgroupMatrixLoad<Left>(&weights[s], 16u * t, false, WEIGHT_PITCH);
                let l1 = subgroupMatrixLoad<Left>(&weights[s], WEIGHT_LOWER + 16u * t, false, WEIGHT_PITCH);
                let r0 = subgroupMatrixLoad<Right>(&values[first], LOWER * t, false, PITCH);
                let r1 = subgroupMatrixLoad<Right>(&values[first + 1u], LOWER * t, false, PITCH);
                let r2 = subgroupMatrixLoad<Right>(&values[first + 2u], LOWER * t, false, PITCH);
                let r3 = subgroupMatrixLoad<Right>(&values[first + 3u], LOWER * t, false, PITCH);
                o00 = subgroupMatrixMultiplyAccumulate(l0, r0, o00);
                o10 = subgroupMatrixMultiplyAccumulate(l1, r0, o10);
                o01 = subgroupMatrixMultiplyAccumulate(l0, r1, o01);
                o11 = subgroupMatrixMultiplyAccumulate(l1, r1, o11);
                o02 = subgroupMatrixMultiplyAccumulate(l0, r2, o02);
                o12 = subgroupMatrixMultiplyAccumulate(l1, r2, o12);
                o03 = subgroupMatrixMultiplyAccumulate(l0, r3, o03);
                o13 = subgroupMatrixMultiplyAccumulate(l1, r3, o13);
            }
        }
        for (var t = 0u; t < 2u; t++) {
            let r0 = subgroupMatrixLoad<Right>(&keys[0], LOWER * t, true, PITCH);
            let r1 = subgroupMatrixLoad<Right>(&keys[1], LOWER * t, true, PITCH);
            let r2 = subgroupMatrixLoad<Right>(&keys[2], LOWER * t, true, PITCH);
            let r3 = subgroupMatrixLoad<Right>(&keys[3], LOWER * t, true, PITCH);
            var s0 = subgroupMatrixMultiplyAccumulate(q00, r0, Sums());
            var s1 = subgroupMatrixMultiplyAccumulate(q10, r0, Sums());
            s0 = subgroupMatrixMultiplyAccumulate(q01, r1, s0);
            s1 = subgroupMatrixMultiplyAccumulate(q11, r1, s1);
            s0 = subgroupMatrixMultiplyAccumulate(q02, r2, s0);
            s1 = subgroupMatrixMultiplyAccumulate(q12, r2, s1);
            s0 = subgroupMatrixMultiplyAccumulate(q03, r3, s0);
            s1 = subgroupMatrixMultiplyAccumulate(q13, r3, s1);
            subgroupMatrixStore(&scores[s], 16u * t, s0, false, SCORE_PITCH);
            subgroupMatrixStore(&scores[s], SCORE_LOWER + 16u * t, s1, false, SCORE_PITCH);
        }
    }
    let row = row0 + 32u * s + id.x;
    workgroupBarrier();
    subgroupMatrixStore(&scores[s], 0u, o00, false, SCORE_PITCH);
    subgroupMatrixStore(&scores[s], 16u, o01, false, SCORE_PITCH);
    subgroupMatrixStore(&scores[s], SCORE_LOWER, o10, false, SCORE_PITCH);
    subgroupMatrixStore(&scores[s], SCORE_LOWER + 16u, o11, false, SCORE_PITCH);
    workgroupBarrier();
    if (row < n) { store(id.y, id.x, row, 64u * group.x, sum); }
    workgroupBarrier();
    subgroupMatrixStore(&scores[s], 0u, o02, false, SCORE_PITCH);
    subgroupMatrixStore(&scores[s], 16u, o03, false, SCORE_PITCH);
    subgroupMatrixStore(&scores[s], SCORE_LOWER, o12, false, SCORE_PITCH);
    subgroupMatrixStore(&scores[s], SCORE_LOWER + 16u, o13, false, SCORE_PITCH);
    workgroupBarrier();
    if (row < n) { store(id.y, id.x, row, 64u * group.x + 32u, sum); }
}
