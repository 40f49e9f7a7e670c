// uses: <sum> params.fused_product common/pass common/fold common/arena4 product/dot type.dot
// linear8: y = W x for up to 8 rows, with int8 activations. The products of decoding.
//   before the product (FLAGS): t = in1 + norm(in0) [* scale_weight]; x = norm(t); both may be stored for later steps
//   after it: gelu(W0 x) * (W1 x), gelu(W x) * up, or softcap
// x: [rows][k]; W: up to three matrices [outputs][k] that share the input, or those of the experts that each row chose.
//
// Each workgroup quantizes the input row for itself into workgroup memory, 16 values per scale: that is cheaper than a
// dispatch and a wait. Then LANES threads compute OUTS outputs. The first workgroup stores the input where later steps
// need it.
// Experts: a slot per group.y.
override LANES: u32 = 16u;  // a multiple of 8
override OUTS: u32 = 2u;    // 1, 2 or 4
override MAX_N: u32 = 1u;   // rows of the bucket, at most 8
override CHUNK: u32 = 256u; // values of a row in memory at once, a multiple of 32; all of them with ADD or NORM
override FLAGS: u32 = 0u;
const ADD = 1u;        // t -> in1 + norm(t) * add_weight
const SCALE = 2u;      // ... * scale_weight[0]
const KEEP = 4u;       // t is stored at out1
const NORM = 8u;       // u -> norm(u) * norm_weight
const KEEP_NORM = 16u; // x is stored at norm_out
const GEGLU = 32u;     // gelu(first matrix) * second matrix
const GATED = 64u;     // gelu(product) * up
const SOFTCAP = 128u;
const EXPERTS = 256u; // in1: their indices; `up_rows`: weight rows from a gate row to its up row

@group(0) @binding(4) var<storage, read> add_weight: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> norm_weight: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read> scale_weight: array<f32>;

var<workgroup> shared_sum: array<f32, 256>;
var<workgroup> chosen: u32; // expert
var<workgroup> x8: array<vec4<u32>, CHUNK / 16u>;  // sixteen activations per vector
var<workgroup> scale_and_sum16: array<vec2<f32>, CHUNK / 16u>; // scale, and scale times sum, of sixteen

fn clamped_tanh(x: f32) -> f32 { return tanh(clamp(x, -15.0, 15.0)); }
fn gelu(x: f32) -> f32 { return 0.5 * x * (1.0 + clamped_tanh(0.7978845608028654 * x * (1.0 + 0.044715 * x * x))); }

// Sixteen values become vector u of x8.
fn quantize16(u: u32, a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>) {
    let m = max(max(abs(a), abs(b)), max(abs(c), abs(d)));
    let highest = max(max(m.x, m.y), max(m.z, m.w));
    let inverse = select(0.0, 127.0 / highest, highest > 0.0);
    let q = vec4<u32>(pack4xI8(vec4<i32>(round(a * inverse))), pack4xI8(vec4<i32>(round(b * inverse))),
                      pack4xI8(vec4<i32>(round(c * inverse))), pack4xI8(vec4<i32>(round(d * inverse))));
    let one = highest / 127.0;
    x8[u] = q;
    scale_and_sum16[u] = vec2<f32>(one, one * dot16(vec4<u32>(0x01010101u), q));
}

// Values k0 .. k0 + CHUNK of a row, without a norm.
fn load_plain(row: u32, slot: u32, k0: u32, local: u32) {
    let x = (params.in0 + row * params.in0_stride + select(0u, slot * params.k, params.input_per_slot == 1u) + k0) / 4u;
    for (var u = local; u < CHUNK / 16u && k0 + u * 16u < params.k; u += 256u) {
        let i = x + u * 4u;
        quantize16(u, arena4[i], arena4[i + 1u], arena4[i + 2u], arena4[i + 3u]);
    }
}

fn squares(a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>) -> f32 { return dot(a, a) + dot(b, b) + dot(c, c) + dot(d, d); }

fn store16(at: u32, a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>) {
    arena4[at] = a;
    arena4[at + 1u] = b;
    arena4[at + 2u] = c;
    arena4[at + 3u] = d;
}

// A whole row of at most 4,096 values, with residual and norm: sixteen per thread, all loaded before the first is
// used.
fn load_normed(row: u32, local: u32, writes: bool) {
    let has = local < CHUNK / 16u;
    let u = min(local, CHUNK / 16u - 1u);
    let i = u * 4u;
    let x = (params.in0 + row * params.in0_stride) / 4u + i;
    var a = arena4[x];
    var b = arena4[x + 1u];
    var c = arena4[x + 2u];
    var d = arena4[x + 3u];
    var na = vec4<f32>();
    var nb = vec4<f32>();
    var nc = vec4<f32>();
    var nd = vec4<f32>();
    if ((FLAGS & NORM) != 0u) {
        na = norm_weight[i];
        nb = norm_weight[i + 1u];
        nc = norm_weight[i + 2u];
        nd = norm_weight[i + 3u];
    }
    if ((FLAGS & ADD) != 0u) {
        let y = (params.in1 + row * params.in1_stride) / 4u + i;
        let ya = arena4[y];
        let yb = arena4[y + 1u];
        let yc = arena4[y + 2u];
        let yd = arena4[y + 3u];
        let wa = add_weight[i];
        let wb = add_weight[i + 1u];
        let wc = add_weight[i + 2u];
        let wd = add_weight[i + 3u];
        var by = 1.0;
        if ((FLAGS & SCALE) != 0u) { by = scale_weight[0]; }
        let r = 1.0 / sqrt(workgroup_sum(select(0.0, squares(a, b, c, d), has), local) / f32(CHUNK) + params.add_eps);
        a = (ya + a * r * wa) * by;
        b = (yb + b * r * wb) * by;
        c = (yc + c * r * wc) * by;
        d = (yd + d * r * wd) * by;
        if ((FLAGS & KEEP) != 0u && writes && has) { store16((params.out1 + row * params.out1_stride) / 4u + i, a, b, c, d); }
    }
    if ((FLAGS & NORM) != 0u) {
        let r = 1.0 / sqrt(workgroup_sum(select(0.0, squares(a, b, c, d), has), local) / f32(CHUNK) + params.norm_eps);
        a = a * r * na;
        b = b * r * nb;
        c = c * r * nc;
        d = d * r * nd;
        if ((FLAGS & KEEP_NORM) != 0u && writes && has) { store16((params.norm_out + row * params.norm_out_stride) / 4u + i, a, b, c, d); }
    }
    if (has) { quantize16(u, a, b, c, d); }
}

fn load_unit(u: u32) {
    let l = low_index(u);
    let h = high_index(u);
    x_low = x8[l];
    x_high = x8[h];
    s_low = scale_and_sum16[l];
    s_high = scale_and_sum16[h];
}

// The products of OUTS neighbouring weight rows with one unit.
fn dot_rows(at: u32, u: u32) -> vec4<f32> {
    let row = row_at(0u, 1u);
    var s = vec4<f32>();
    s.x = dot_unit(at, u);
    if (OUTS > 1u) { s.y = dot_unit(at + row, u); }
    if (OUTS > 2u) {
        s.z = dot_unit(at + 2u * row, u);
        s.w = dot_unit(at + 3u * row, u);
    }
    return s;
}

// lanes_sum of four outputs, valid in the first lane.
fn lanes_sums(s: vec4<f32>, local: u32) -> vec4<f32> {
    var t = vec4<f32>();
    t.x = lanes_sum(s.x, local);
    if (OUTS > 1u) { t.y = lanes_sum(s.y, local); }
    if (OUTS > 2u) {
        t.z = lanes_sum(s.z, local);
        t.w = lanes_sum(s.w, local);
    }
    return t;
}

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>) {
    let outputs = 256u / LANES * OUTS; // per workgroup, a multiple of 4
    let lane = local % LANES;
    var first = folded(group, groups) * outputs;
    var begin = 0u;
    var end = min(live_rows(), MAX_N);
    var slot = 0u;
    var before = 0u; // weight rows of the preceding experts
    if ((FLAGS & EXPERTS) != 0u) {
        first = group.x * outputs;
        begin = group.y / params.slots;
        end = select(begin, begin + 1u, begin < live_rows());
        slot = group.y % params.slots;
        let at = params.in1 + begin * params.in1_stride + slot;
        if (local == 0u) { chosen = u32(arena4[at / 4u][at & 3u]) - params.expert0; }
        let expert = workgroupUniformLoad(&chosen);
        if (expert >= params.expert_count) { return; } // in another binding
        before = expert * params.cols;
    }
    let mine = min(first + local / LANES * OUTS, params.row_count - OUTS);
    var w = row_at(params.matrix0, before + mine);
    if (mine >= params.matrix2_first) { w = row_at(params.matrix2, mine - params.matrix2_first); }
    else if (mine >= params.matrix1_first) { w = row_at(params.matrix1, mine - params.matrix1_first); }
    let pair = row_at(params.matrix1, before + mine + params.up_rows);
    for (var r = begin; r < end; r++) {
        var s = vec4<f32>();
        var t = vec4<f32>();
        for (var k0 = 0u; k0 < params.k; k0 += CHUNK) {
            if ((FLAGS & (ADD | NORM)) != 0u) {
                load_normed(r, local, first == 0u && slot == 0u);
            } else {
                load_plain(r, slot, k0, local);
            }
            workgroupBarrier();
            let units = min(CHUNK, params.k - k0) / 32u;
            for (var u = lane; u < units; u += LANES) {
                load_unit(u);
                s += dot_rows(w, k0 / 32u + u);
                if ((FLAGS & GEGLU) != 0u) { t += dot_rows(pair, k0 / 32u + u); }
            }
            workgroupBarrier(); // before the row is replaced
        }
        s = lanes_sums(s, local);
        if ((FLAGS & GEGLU) != 0u) {
            t = lanes_sums(t, local);
            s = vec4<f32>(gelu(s.x), gelu(s.y), gelu(s.z), gelu(s.w)) * t;
        }
        workgroupBarrier();
        if (lane == 0u) {
            let at = local / LANES * OUTS;
            shared_sum[at] = s.x;
            if (OUTS > 1u) { shared_sum[at + 1u] = s.y; }
            if (OUTS > 2u) {
                shared_sum[at + 2u] = s.z;
                shared_sum[at + 3u] = s.w;
            }
        }
        workgroupBarrier();
        // four outputs at a time: only whole vectors are stored
        let o = first + local * 4u;
        if (local * 4u < outputs && o < params.row_count) {
            var value = vec4<f32>(shared_sum[local * 4u], shared_sum[local * 4u + 1u], shared_sum[local * 4u + 2u],
                                  shared_sum[local * 4u + 3u]);
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
            var y = params.out0 + r * params.out0_stride + slot * params.row_count + o;
            if (o >= params.matrix2_first) { y = params.matrix2_out + r * params.matrix2_stride + o - params.matrix2_first; }
            else if (o >= params.matrix1_first) { y = params.matrix1_out + r * params.matrix1_stride + o - params.matrix1_first; }
            arena4[y / 4u] = value;
        }
    }
}
