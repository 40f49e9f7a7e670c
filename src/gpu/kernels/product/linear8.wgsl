// uses: <sum> <side> params.fused_product common/pass common/fold common/arena4 product/dot type.dot
// linear8: y = W x for up to 8 rows, with int8 activations. The products of decoding.
//   before the product (FLAGS): t = in1 + norm(in0) [* number]; x = norm(t); both may be stored for later steps
//   with it: W x + scale * B a for any of the products, what adapters add; a = A x is computed before, or by each
//   workgroup for itself if A is small
//   after it: gelu(W0 x) * (W1 x), gelu(W x) * up, or softcap
// x: [rows][K]; W: up to three matrices [outputs][K] that share the input, or those of the experts that each row chose.
//
// The input is made int8, 16 values per scale, by each workgroup for itself in workgroup memory: that is cheaper than a
// dispatch and a wait. Or it was stored as int8 by the kernel before (INT8), or consists of attention's partial results,
// which are combined here (COMBINE). Then LANES threads compute OUTS outputs; of a single output the first weights
// are loaded before the input (AHEAD). The first workgroup stores the input where later steps need it.
// Experts: a row and slot per group.y.
override LANES: u32 = 16u;  // a power of two from 8 on
override OUTS: u32 = 1u;    // 1 or 2
override MAX_N: u32 = 1u;   // rows of the bucket, at most 8: a workgroup computes one, group.z
override K: u32 = 256u;     // values of an input row; an override, so that loops have a constant length
override CHUNK: u32 = 256u; // values of a row in memory at once, a multiple of 32; all of them with ADD, NORM or COMBINE
override FLAGS: u32 = 0u;
override UNITS: u32 = K / 32u;
override STEPS: u32 = (UNITS + LANES - 1u) / LANES; // units of a thread
override PER_THREAD: u32 = select(8u, 16u, K > 2048u); // values of a row with a norm
const ADD = 1u;        // t -> in1 + norm(t) * add_weight
const SCALE = 2u;      // ... * numbers[0]
const KEEP = 4u;       // t is stored at out1
const NORM = 8u;       // u -> norm(u) * norm_weight
const KEEP_NORM = 16u; // x is stored at norm_out; with COMBINE, too
const GEGLU = 32u;     // gelu(first matrix) * second matrix
const GATED = 64u;     // gelu(product) * up
const SOFTCAP = 128u;
const EXPERTS = 256u;   // in1: their indices; `up_rows`: weight rows from a gate row to its up row
const INT8 = 512u;      // the input is in the side buffer: integers at vector in0, scales at vector in0_stride
const INT8_OUT = 1024u; // the output goes there: integers at vector out0, scales at vector out0_stride
const COMBINE = 2048u;  // where `parts` > 0 the input is in1: [row][head][part] of (max, sum, two unused, columns)
const ADAPTED = 4096u;  // B in `numbers`; without ADD and NORM
override LOW: u32 = FLAGS >> 16u; // ADAPTED: A is in norm_weight, [LOW or less][K]; a power of two. 0: its result is in the arena
override LOW_THREADS: u32 = select(1u, 256u, LOW > 0u);
override LOW_VALUES: u32 = select(1u, 64u, LOW > 0u);
const THREADS = 256u;
const MAX_PARTS = 8u;
const MAX_HEADS = 32u;

@group(0) @binding(4) var<storage, read> add_weight: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> norm_weight: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read> numbers: array<f32>; // of SCALE, or of ADAPTED

var<workgroup> shared_sum: array<f32, 256>;
var<workgroup> out_sum: array<f32, 128>;  // [output][part of its lanes], a part at least 4
var<workgroup> pair_sum: array<f32, 128>; // the same of the second matrix
var<workgroup> output4: array<vec4<f32>, 16>; // INT8_OUT: at most 64 outputs
var<workgroup> part_weight: array<f32, MAX_HEADS * MAX_PARTS>; // COMBINE
var<workgroup> head_factor: array<f32, MAX_HEADS>;
var<workgroup> chosen: u32; // expert
var<workgroup> low_part: array<f32, LOW_THREADS>;
var<workgroup> low: array<f32, LOW_VALUES>;
var<workgroup> x8: array<vec4<u32>, CHUNK / 16u>;  // sixteen activations per vector
var<workgroup> scale_and_sum16: array<vec2<f32>, CHUNK / 16u>; // scale, and scale times sum, of sixteen

fn clamped_tanh(x: f32) -> f32 { return tanh(clamp(x, -15.0, 15.0)); }
fn gelu(x: f32) -> f32 { return 0.5 * x * (1.0 + clamped_tanh(0.7978845608028654 * x * (1.0 + 0.044715 * x * x))); }

// ---- the input ----

// 127 / highest; 0 where the quotient would overflow.
fn inverse_of(highest: f32) -> f32 { return select(0.0, 127.0 / highest, highest > 0x1p-100); }

struct Sixteen { q: vec4<u32>, scale_and_sum: vec2<f32> }

fn sixteen_of(a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>) -> Sixteen {
    let m = max(max(abs(a), abs(b)), max(abs(c), abs(d)));
    let highest = max(max(m.x, m.y), max(m.z, m.w));
    let inverse = inverse_of(highest);
    let q = vec4<u32>(pack4xI8(vec4<i32>(round(a * inverse))), pack4xI8(vec4<i32>(round(b * inverse))),
                      pack4xI8(vec4<i32>(round(c * inverse))), pack4xI8(vec4<i32>(round(d * inverse))));
    let one = highest / 127.0;
    return Sixteen(q, vec2<f32>(one, one * dot16(vec4<u32>(0x01010101u), q)));
}

// Values k0 .. k0 + CHUNK of a row, without a norm: sixteen per thread.
fn load_plain(row: u32, slot: u32, k0: u32, local: u32) {
    let x = (params.in0 + row * params.in0_stride + select(0u, slot * K, params.input_per_slot == 1u) + k0) / 4u;
    for (var u = local; u < CHUNK / 16u && k0 + u * 16u < K; u += 256u) {
        let i = x + u * 4u;
        let s = sixteen_of(arena4[i], arena4[i + 1u], arena4[i + 2u], arena4[i + 3u]);
        x8[u] = s.q;
        scale_and_sum16[u] = s.scale_and_sum;
    }
}

// A whole row from the partial results of attention, each relative to its own maximum: four values per thread. Loops
// over parts have a constant length, so that their loads are in flight together.
fn load_combined(row: u32, local: u32, writes: bool) {
    let heads = K / params.head;
    let size = params.head / 4u + 1u; // vectors of a part
    let begin = params.in1 / 4u + row * heads * params.parts * size;
    if (local < heads) {
        let first = begin + local * params.parts * size;
        var best = -3.0e38;
        for (var p = 0u; p < MAX_PARTS; p++) { best = max(best, arena4[first + min(p, params.parts - 1u) * size].x); }
        var total = 0.0;
        for (var p = 0u; p < MAX_PARTS; p++) {
            let part = arena4[first + min(p, params.parts - 1u) * size];
            let weight = select(0.0, exp(max(part.x - best, -80.0)), p < params.parts);
            total += weight * part.y;
            part_weight[local * MAX_PARTS + p] = weight;
        }
        head_factor[local] = 1.0 / total;
    }
    workgroupBarrier();
    for (var e0 = 0u; e0 < K / 4u; e0 += 256u) {
        let e = min(e0 + local, K / 4u - 1u);
        let head = e * 4u / params.head;
        let first = begin + head * (params.parts * size - params.head / 4u) + 1u + e;
        var v = vec4<f32>();
        for (var p = 0u; p < MAX_PARTS; p++) { v += part_weight[head * MAX_PARTS + p] * arena4[first + min(p, params.parts - 1u) * size]; }
        v *= head_factor[head];
        let m = abs(v);
        let highest = near_max(max(max(m.x, m.y), max(m.z, m.w)), 4u, local);
        let q = vec4<i32>(round(v * inverse_of(highest)));
        let sum = near_sum(f32(q.x + q.y + q.z + q.w), 4u, local);
        if (e0 + local < K / 4u) {
            x8[e / 4u][e % 4u] = pack4xI8(q);
            if (e % 4u == 0u) { scale_and_sum16[e / 4u] = highest / 127.0 * vec2<f32>(1.0, sum); }
            if ((FLAGS & KEEP_NORM) != 0u && writes) { arena4[(params.norm_out + row * params.norm_out_stride) / 4u + e] = v; }
        }
    }
}

// The values of one thread, PER_THREAD / 4 vectors of them. Named, not an array: an index could keep them from registers.
struct Values { a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32> }

fn squares(v: Values) -> f32 { return dot(v.a, v.a) + dot(v.b, v.b) + dot(v.c, v.c) + dot(v.d, v.d); }

fn arena_values(at: u32) -> Values {
    var v = Values(arena4[at], arena4[at + 1u], vec4<f32>(), vec4<f32>());
    if (PER_THREAD > 8u) {
        v.c = arena4[at + 2u];
        v.d = arena4[at + 3u];
    }
    return v;
}

fn store_values(at: u32, v: Values) {
    arena4[at] = v.a;
    arena4[at + 1u] = v.b;
    if (PER_THREAD > 8u) {
        arena4[at + 2u] = v.c;
        arena4[at + 3u] = v.d;
    }
}

fn scaled(v: Values, by: f32) -> Values { return Values(v.a * by, v.b * by, v.c * by, v.d * by); }
fn product_of(v: Values, w: Values) -> Values { return Values(v.a * w.a, v.b * w.b, v.c * w.c, v.d * w.d); }
fn sum_of_values(v: Values, w: Values) -> Values { return Values(v.a + w.a, v.b + w.b, v.c + w.c, v.d + w.d); }

// The values become int8: sixteen of one thread, or of two neighbors.
fn quantize_values(v: Values, local: u32, has: bool) {
    let threads = 16u / PER_THREAD; // per sixteen
    let m = max(max(abs(v.a), abs(v.b)), max(abs(v.c), abs(v.d)));
    let highest = near_max(max(max(m.x, m.y), max(m.z, m.w)), threads, local);
    let inverse = inverse_of(highest);
    let qa = vec4<i32>(round(v.a * inverse));
    let qb = vec4<i32>(round(v.b * inverse));
    let qc = vec4<i32>(round(v.c * inverse));
    let qd = vec4<i32>(round(v.d * inverse));
    let q = qa + qb + qc + qd;
    let sum = near_sum(f32(q.x + q.y + q.z + q.w), threads, local);
    if (has) {
        let u = local / threads;
        let word = local % threads * 2u;
        x8[u][word] = pack4xI8(qa);
        x8[u][word + 1u] = pack4xI8(qb);
        if (PER_THREAD > 8u) {
            x8[u].z = pack4xI8(qc);
            x8[u].w = pack4xI8(qd);
        }
        if (word == 0u) { scale_and_sum16[u] = highest / 127.0 * vec2<f32>(1.0, sum); }
    }
}

// A whole row of at most 4,096 values with residual and norm, all loaded before the first is used. The factor of the
// norm is returned and multiplies the outputs, so that rounding does not wait for it.
fn load_normed(row: u32, local: u32, writes: bool) -> f32 {
    let has = local < K / PER_THREAD;
    let e = min(local, K / PER_THREAD - 1u) * (PER_THREAD / 4u);
    var v = arena_values((params.in0 + row * params.in0_stride) / 4u + e);
    var n = Values(norm_weight[e], norm_weight[e + 1u], vec4<f32>(), vec4<f32>());
    if (PER_THREAD > 8u) {
        n.c = norm_weight[e + 2u];
        n.d = norm_weight[e + 3u];
    }
    if ((FLAGS & ADD) != 0u) {
        let y = arena_values((params.in1 + row * params.in1_stride) / 4u + e);
        var w = Values(add_weight[e], add_weight[e + 1u], vec4<f32>(), vec4<f32>());
        if (PER_THREAD > 8u) {
            w.c = add_weight[e + 2u];
            w.d = add_weight[e + 3u];
        }
        var by = 1.0;
        if ((FLAGS & SCALE) != 0u) { by = numbers[0]; }
        let r = 1.0 / sqrt(workgroup_sum(0u, select(0.0, squares(v), has), local) / f32(K) + params.add_eps);
        v = scaled(sum_of_values(y, product_of(scaled(v, r), w)), by);
        if ((FLAGS & KEEP) != 0u && writes && has) { store_values((params.out1 + row * params.out1_stride) / 4u + e, v); }
    }
    if ((FLAGS & NORM) == 0u) {
        quantize_values(v, local, has);
        return 1.0;
    }
    quantize_values(product_of(v, n), local, has);
    let r = 1.0 / sqrt(workgroup_sum(1u, select(0.0, squares(v), has), local) / f32(K) + params.norm_eps);
    if ((FLAGS & KEEP_NORM) != 0u && writes && has) {
        store_values((params.norm_out + row * params.norm_out_stride) / 4u + e, product_of(scaled(v, r), n));
    }
    return r;
}

// ---- the products ----

// The activations of unit u. `row`: of the int8 tensor.
fn load_unit(row: u32, u: u32) {
    let l = low_index(u);
    let h = high_index(u);
    if ((FLAGS & INT8) != 0u) {
        let scales = params.in0_stride + row * UNITS;
        x_low = side[params.in0 + row * (K / 16u) + l];
        x_high = side[params.in0 + row * (K / 16u) + h];
        let low = side[scales + l / 2u];
        let high = side[scales + h / 2u];
        s_low = bitcast<vec2<f32>>(select(low.xy, low.zw, (l & 1u) == 1u));
        s_high = bitcast<vec2<f32>>(select(high.xy, high.zw, (h & 1u) == 1u));
    } else {
        x_low = x8[l];
        x_high = x8[h];
        s_low = scale_and_sum16[l];
        s_high = scale_and_sum16[h];
    }
}

// The products of OUTS neighboring weight rows with the unit that load_unit loaded.
fn dot_rows(at: u32, u: u32) -> vec2<f32> {
    var s = vec2<f32>(dot_unit(fetch_unit(at, u), u), 0.0);
    if (OUTS > 1u) { s.y = dot_unit(fetch_unit(at + row_at(0u, 1u), u), u); }
    return s;
}

// Units of a thread that are loaded before the input: where that is not int8 already and all registers are free.
fn fetched_ahead() -> u32 { return select(0u, AHEAD, OUTS == 1u && CHUNK >= K && (FLAGS & (GEGLU | INT8)) == 0u); }

// Adds the product with unit u of the row, if there is one.
fn add_unit(sum: ptr<function, vec2<f32>>, unit: Unit, row: u32, u: u32) {
    if (u < UNITS) {
        load_unit(row, u);
        (*sum).x += dot_unit(unit, u);
    }
}

// What adapters add to outputs o .. o + OUTS - 1 of a product: this thread's part, since a sum over its rank is one over
// more columns. B: [experts][panels][rank][16].
fn low_rank(at: u32, rank: u32, high: u32, scale: f32, o: u32, lane: u32) -> vec2<f32> {
    let b = high + o / 16u * rank * 16u + o % 16u;
    var s = vec2<f32>();
    for (var j = lane; j < rank; j += LANES) {
        var a = 0.0;
        if (LOW > 0u) { a = low[at + j]; } else { a = arena4[(at + j) / 4u][(at + j) & 3u]; }
        s.x += a * numbers[b + j * 16u];
        if (OUTS > 1u) { s.y += a * numbers[b + j * 16u + 1u]; }
    }
    return scale * s;
}

// What adapters add to the outputs of this thread, from `mine` on.
fn adapters(r: u32, slot: u32, expert: u32, mine: u32, lane: u32) -> vec2<f32> {
    let row = r * params.low_stride;
    if (mine >= params.matrix2_first) {
        return low_rank(params.low2 + row, params.rank2, params.high2, params.low_scale2, mine - params.matrix2_first, lane);
    }
    if (mine >= params.matrix1_first) {
        return low_rank(params.low1 + row, params.rank1, params.high1, params.low_scale1, mine - params.matrix1_first, lane);
    }
    let high = params.high0 + expert * params.panels * 16u * params.rank0;
    return low_rank(params.low0 + row + slot * params.rank0, params.rank0, high, params.low_scale0, mine, lane);
}

fn adapters_of_up(r: u32, slot: u32, expert: u32, mine: u32, lane: u32) -> vec2<f32> {
    let high = params.high1 + expert * params.panels * 16u * params.rank1;
    return low_rank(params.low1 + r * params.low1_stride + slot * params.rank1, params.rank1, high, params.low_scale1, mine + params.up_rows, lane);
}

// A x of the row in workgroup memory, `values` of them: 256 / LOW threads for each.
fn compute_low(row: u32, values: u32, local: u32) {
    let threads = 256u / max(LOW, 1u);
    let j = local / threads;
    var sum = 0.0;
    for (var u = local % threads; j < values && u < K / 16u; u += threads) {
        var q: vec4<u32>;
        var scale: f32;
        if ((FLAGS & INT8) != 0u) {
            q = side[params.in0 + row * (K / 16u) + u];
            scale = bitcast<f32>(side[params.in0_stride + row * UNITS + u / 2u][(u & 1u) * 2u]);
        } else {
            q = x8[u];
            scale = scale_and_sum16[u].x;
        }
        let w = j * (K / 4u) + u * 4u;
        sum += scale * (dot(norm_weight[w], vec4<f32>(unpack4xI8(q.x))) + dot(norm_weight[w + 1u], vec4<f32>(unpack4xI8(q.y))) +
                        dot(norm_weight[w + 2u], vec4<f32>(unpack4xI8(q.z))) + dot(norm_weight[w + 3u], vec4<f32>(unpack4xI8(q.w))));
    }
    low_part[local] = sum;
    workgroupBarrier();
    if (local < values) {
        var all = 0.0;
        for (var t = 0u; t < threads; t++) { all += low_part[local * threads + t]; }
        low[local] = all;
    }
    workgroupBarrier();
}

// Stores the sums of this thread's OUTS outputs over its lanes, in parts where LANES exceeds a subgroup.
fn store_sums(pair: bool, s: vec2<f32>, local: u32) {
    let parts = LANES / summed_lanes();
    for (var o = 0u; o < OUTS; o++) {
        let sum = lanes_sum(s[o], local);
        let at = (local / LANES * OUTS + o) * parts + local % LANES / summed_lanes();
        if (local % summed_lanes() == 0u) {
            if (pair) { pair_sum[at] = sum; } else { out_sum[at] = sum; }
        }
    }
}

fn output_of(output: u32, factor: f32) -> f32 {
    let parts = LANES / summed_lanes();
    var sum = out_sum[output * parts];
    for (var p = 1u; p < parts; p++) { sum += out_sum[output * parts + p]; }
    sum *= factor;
    if ((FLAGS & GEGLU) != 0u) {
        var up = pair_sum[output * parts];
        for (var p = 1u; p < parts; p++) { up += pair_sum[output * parts + p]; }
        sum = gelu(sum) * up * factor;
    }
    return sum;
}

// The outputs of the workgroup in output4, as int8.
fn store_int8(row: u32, first: u32, outputs: u32, local: u32) {
    let at = local * 16u;
    if (at < outputs && first + at < params.row_count) {
        let i = local * 4u;
        store_sixteen(row, (first + at) / 16u, sixteen_of(output4[i], output4[i + 1u], output4[i + 2u], output4[i + 3u]));
    }
}

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>) {
    let outputs = 256u / LANES * OUTS; // per workgroup, a multiple of 4
    let lane = local % LANES;
    var first = folded(group, groups) * outputs;
    var r = group.z; // row
    // a bucket of one row need not wait for the count of rows, unless no logits may be wanted
    if ((MAX_N > 1u || params.logit_rows == 1u) && r >= live_rows()) { return; }
    var slot = 0u;
    var expert = 0u;
    var before = 0u; // weight rows of the preceding experts
    if ((FLAGS & EXPERTS) != 0u) {
        first = group.x * outputs;
        r = group.y / params.slots;
        if (r >= live_rows()) { return; }
        slot = group.y % params.slots;
        let at = params.in1 + r * params.in1_stride + slot;
        if (local == 0u) { chosen = u32(arena4[at / 4u][at & 3u]) - params.expert0; }
        let here = workgroupUniformLoad(&chosen);
        if (here >= params.expert_count) { return; } // in another binding
        before = here * params.cols;
        expert = params.expert0 + here;
    }
    let mine = min(first + local / LANES * OUTS, params.row_count - OUTS);
    var w = row_at(params.matrix0, before + mine);
    if (mine >= params.matrix2_first) { w = row_at(params.matrix2, mine - params.matrix2_first); }
    else if (mine >= params.matrix1_first) { w = row_at(params.matrix1, mine - params.matrix1_first); }
    let pair = row_at(params.matrix1, before + mine + params.up_rows);
    // the first units, while the input is loaded
    let w0 = fetch_unit(w, min(lane, UNITS - 1u));
    let w1 = fetch_unit(w, min(lane + LANES, UNITS - 1u));
    let w2 = fetch_unit(w, min(lane + 2u * LANES, UNITS - 1u));
    var s = vec2<f32>();
    var t = vec2<f32>();
    if ((FLAGS & ADAPTED) != 0u && LOW == 0u) {
        s = adapters(r, slot, expert, mine, lane);
        if ((FLAGS & GEGLU) != 0u) { t = adapters_of_up(r, slot, expert, mine, lane); }
    }
    var factor = 1.0;
    let stored = r * max(params.slots, 1u) + slot; // row of an int8 tensor, with a row per slot
    let held = select(CHUNK, K, (FLAGS & INT8) != 0u);
    for (var k0 = 0u; k0 < K; k0 += held) {
        if ((FLAGS & (ADD | NORM)) != 0u) {
            factor = load_normed(r, local, first == 0u && slot == 0u);
        } else if ((FLAGS & COMBINE) != 0u && params.parts > 0u) {
            load_combined(r, local, first == 0u);
        } else if ((FLAGS & INT8) == 0u) {
            load_plain(r, slot, k0, local);
        }
        workgroupBarrier();
        if (fetched_ahead() > 0u) {
            if (AHEAD > 0u) { add_unit(&s, w0, stored, lane); }
            if (AHEAD > 1u) { add_unit(&s, w1, stored, lane + LANES); }
            if (AHEAD > 2u) { add_unit(&s, w2, stored, lane + 2u * LANES); }
        }
        if (held >= K) { // loops of constant length are unrolled
            for (var i = fetched_ahead(); i < STEPS; i++) {
                let u = lane + i * LANES;
                if (UNITS % LANES == 0u || u < UNITS) {
                    load_unit(stored, u);
                    s += dot_rows(w, u);
                    if ((FLAGS & GEGLU) != 0u) { t += dot_rows(pair, u); }
                }
            }
        } else {
            for (var u = lane; u < min(held, K - k0) / 32u; u += LANES) {
                load_unit(stored, u);
                s += dot_rows(w, k0 / 32u + u);
                if ((FLAGS & GEGLU) != 0u) { t += dot_rows(pair, k0 / 32u + u); }
            }
        }
        if (held < K) { workgroupBarrier(); } // before the chunk is replaced
    }
    if (LOW > 0u) {
        compute_low(stored, params.low_values, local);
        s += adapters(0u, 0u, 0u, mine, lane);
        if ((FLAGS & GEGLU) != 0u) { t += adapters_of_up(0u, 0u, 0u, mine, lane); }
    }
    store_sums(false, s, local);
    if ((FLAGS & GEGLU) != 0u) { store_sums(true, t, local); }
    workgroupBarrier();
    // four outputs at a time: only whole vectors are stored
    let o = first + local * 4u;
    let has = local * 4u < outputs && o < params.row_count;
    var value = vec4<f32>();
    if (has) {
        let at = local * 4u;
        value = vec4<f32>(output_of(at, factor), output_of(at + 1u, factor), output_of(at + 2u, factor), output_of(at + 3u, factor));
        if ((FLAGS & GATED) != 0u) {
            let gate = vec4<f32>(gelu(value.x), gelu(value.y), gelu(value.z), gelu(value.w));
            value = gate * arena4[(params.up + r * params.up_stride + o) / 4u];
        }
        if ((FLAGS & SOFTCAP) != 0u) {
            let x = value / params.cap;
            let capped = params.cap * vec4<f32>(clamped_tanh(x.x), clamped_tanh(x.y), clamped_tanh(x.z), clamped_tanh(x.w));
            // by bits, so that NaN stays NaN
            value = select(value, capped, (bitcast<vec4<u32>>(value) & vec4<u32>(0x7fffffffu)) <= vec4<u32>(0x7f800000u));
        }
    }
    if ((FLAGS & INT8_OUT) != 0u) {
        if (has) { output4[local] = value; }
        workgroupBarrier();
        store_int8(stored, first, outputs, local);
    } else if (has) {
        var y = params.out0 + r * params.out0_stride + slot * params.row_count + o;
        if (o >= params.matrix2_first) { y = params.matrix2_out + r * params.matrix2_stride + o - params.matrix2_first; }
        else if (o >= params.matrix1_first) { y = params.matrix1_out + r * params.matrix1_stride + o - params.matrix1_first; }
        arena4[y / 4u] = value;
    }
}
