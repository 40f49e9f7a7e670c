// Q6_K: 256 values in 210 bytes, which repack pads to 224, 14 vectors, so that everything is aligned; vectors 0..7: low
// nibbles, 8..11: high bit pairs, 12: 16 int8 scales of 16 values each, 13: f16 scale. Value 128n + 32r + l: nibble r /
// 2 of byte 64n + 32(r % 2) + l, bits 2r of high byte 32n + l; value = scale * (q - 32).

// section unpack, uses: types/read_bytes types/eight
fn unpack8(at: u32, u: u32) {
    let b = at + 224u * (u >> 5u);
    let n = (u >> 4u) & 1u;
    let r = (u >> 2u) & 3u;
    let scale = f16_at(b + 208u) * signed8(u8_at(b + 192u + ((u & 31u) >> 1u)));
    let l = 8u * (u & 3u);
    let low = b + 64u * n + 32u * (r & 1u) + l;
    let high = b + 128u + 32u * n + l;
    let shift = 4u * (r >> 1u);
    wa = scale * (fields(word_at(low), shift, 15u) + 16.0 * fields(word_at(high), 2u * r, 3u) - 32.0);
    wb = scale * (fields(word_at(low + 4u), shift, 15u) + 16.0 * fields(word_at(high + 4u), 2u * r, 3u) - 32.0);
}

// section scales
// Scale i of a block, whose sixteen int8 scales are the vector s.
fn scale_byte(s: vec4<u32>, i: u32) -> f32 {
    let w = select(select(s.x, s.y, (i & 4u) != 0u), select(s.z, s.w, (i & 4u) != 0u), (i & 8u) != 0u);
    return f32(i32(w << (24u - 8u * (i & 3u))) >> 24u);
}

// section dot, uses: product/dot_vec4 types/read_vec4 type.scales
// Unit v of a block is vector v: its low nibbles are 16 values, its high nibbles the values 64 later.
const BLOCK = 14u;

fn low_index(u: u32) -> u32 { return 8u * (u >> 2u) + (u & 3u); }
fn high_index(u: u32) -> u32 { return low_index(u) + 4u; }

// Six bits minus 32, four per word, without borrows between bytes.
fn centred(q: vec4<u32>) -> vec4<u32> {
    return ((q | vec4<u32>(0x80808080u)) - vec4<u32>(0x20202020u)) ^ vec4<u32>(0x80808080u);
}

const AHEAD = 0u;

struct Unit { q: vec4<u32>, pairs: vec4<u32>, scales: vec4<u32>, d: u32 }

fn fetch_unit(row: u32, u: u32) -> Unit {
    let block = row + (u >> 3u) * BLOCK;
    let v = u & 7u;
    return Unit(weights[block + v], weights[block + 8u + 2u * (v >> 2u) + (v & 1u)], weights[block + 12u], weights[block + 13u].x);
}

fn dot_unit(unit: Unit, u: u32) -> f32 {
    let v = u & 7u;
    let pairs = unit.pairs >> vec4<u32>(v & 2u);
    let i = 8u * (v >> 2u) + (v & 3u); // scale of the low nibbles; that of the high ones is i + 4
    let mask = vec4<u32>(0x0f0f0f0fu);
    let top = vec4<u32>(0x30303030u);
    let l = dot16(centred((unit.q & mask) | ((pairs << vec4<u32>(4u)) & top)), x_low) * s_low.x;
    let h = dot16(centred(((unit.q >> vec4<u32>(4u)) & mask) | (pairs & top)), x_high) * s_high.x;
    return f16_value(unit.d & 0xffffu) * (scale_byte(unit.scales, i) * l + scale_byte(unit.scales, i + 4u) * h);
}

// section wide, uses: product/wide types/read_vec4 type.scales
// Unit v as in dot.
const BLOCK = 14u;

fn offset_low(v: u32) -> u32 { return 128u * (v >> 2u) + 32u * ((v >> 1u) & 1u) + 16u * (v & 1u); }
fn offset_high(v: u32) -> u32 { return offset_low(v) + 64u; }

fn six(q: u32, shift: u32, high: u32, at: u32) -> vec4<f32> {
    let pair = (vec4<u32>(high, high >> 8u, high >> 16u, high >> 24u) >> vec4<u32>(at)) & vec4<u32>(3u);
    return nibbles(q, shift) + 16.0 * vec4<f32>(pair) - 32.0;
}

fn dot32(block: u32, v: u32) -> f32 {
    let q = weights[block + v];
    let h = weights[block + 8u + 2u * (v >> 2u) + (v & 1u)];
    let s = weights[block + 12u];
    let d = f16_value(weights[block + 13u].x & 0xffffu);
    let r = (v >> 1u) & 1u;
    let i = 8u * (v >> 2u) + 2u * r + (v & 1u); // scale of the low nibbles; that of the high ones is i + 4
    let l = dot(six(q.x, 0u, h.x, 2u * r), x0) + dot(six(q.y, 0u, h.y, 2u * r), x1) +
            dot(six(q.z, 0u, h.z, 2u * r), x2) + dot(six(q.w, 0u, h.w, 2u * r), x3);
    let t = 2u * r + 4u;
    let u = dot(six(q.x, 4u, h.x, t), x4) + dot(six(q.y, 4u, h.y, t), x5) + dot(six(q.z, 4u, h.z, t), x6) +
            dot(six(q.w, 4u, h.w, t), x7);
    return d * (scale_byte(s, i) * l + scale_byte(s, i + 4u) * u);
}

// section run, uses: product/run types/read_vec4
const FIRST_V = 1u;

struct Run { scale: vec2<f32>, a: vec4<u32>, b: vec4<u32> }

fn fetch(at: u32, s: u32, p: u32) -> Run {
    let block = at / 16u + 14u * (s >> 2u);
    let n = (s >> 1u) & 1u;
    let shift = vec4<u32>(4u * (s & 1u)); // of r = 2 (s % 2) and r + 1
    let high = weights[block + 8u + 2u * n + p] >> shift;
    let a = ((weights[block + 4u * n + p] >> shift) & vec4<u32>(0x0f0f0f0fu)) | ((high & vec4<u32>(0x03030303u)) << vec4<u32>(4u));
    let b = ((weights[block + 4u * n + 2u + p] >> shift) & vec4<u32>(0x0f0f0f0fu)) | ((high & vec4<u32>(0x0c0c0c0cu)) << vec4<u32>(2u));
    let scales = vec2<i32>(i32(weights[block + 12u][s & 3u])) << vec2<u32>(24u - 8u * p, 8u - 8u * p);
    return Run(f16_value(weights[block + 13u].x & 0xffffu) * vec2<f32>(scales >> vec2<u32>(24u)), a, b);
}

fn unpack_quarter(run: ptr<function, Run>, j: u32) {
    wa = (*run).scale.x * (vec4<f32>(unpack4xU8((*run).a.x)) - 32.0);
    wb = (*run).scale.y * (vec4<f32>(unpack4xU8((*run).b.x)) - 32.0);
    (*run).a = (*run).a.yzwx;
    (*run).b = (*run).b.yzwx;
}

// section tile, uses: product/tile8_weights types/read_vec4 common/int8_words
const PARTS = 4u;
const HAS_MIN = false;
const TWO_SCALES = true;

struct Raw { low: vec4<u32>, high: vec4<u32>, scales: u32, d: u32 }

// Which 32 values of a half block a part begins in.
fn run_of(s: u32, part: u32) -> u32 { return 2u * (s & 1u) + (part >> 1u); }

fn fetch(row: u32, s: u32, part: u32) -> Raw {
    let block = (row * (params.k / 256u) + (s >> 2u)) * 14u;
    let n = (s >> 1u) & 1u;
    let r = run_of(s, part);
    let h = part & 1u;
    return Raw(weights[block + 4u * n + 2u * (r & 1u) + h], weights[block + 8u + 2u * n + h],
               weights[block + 12u][(8u * n + 2u * r) >> 2u], weights[block + 13u].x);
}

fn unpack(o: u32, s: u32, part: u32, raw: Raw) {
    let r = run_of(s, part);
    let low = (raw.low >> vec4<u32>(4u * (r >> 1u))) & vec4<u32>(0x0f0f0f0fu);
    let high = (raw.high >> vec4<u32>(2u * r)) & vec4<u32>(0x03030303u);
    store16(o, part, signed_bytes(low | (high << vec4<u32>(4u)), 0x20202020u, 6u));
    if ((part & 1u) == 0u) {
        let pair = i32(raw.scales << (16u - 8u * ((2u * r) & 2u))); // both of the 32 values in the upper two bytes
        w_scale[o * 2u + (part >> 1u)] = vec2<u32>(bitcast<u32>(f16_value(raw.d & 0xffffu)),
                                                   (u32((pair << 8u) >> 24u) & 0xffffu) | u32((pair >> 24u) << 16u));
    }
}

// section six_bits
// Four values minus 32 from the lower six bits of bytes, as the mantissa of 2^23 + x, which takes fewer instructions
// than conversions. Three of them keep their bit position; multiply by SIX_BIT_SCALE.
const MANTISSA = 0x4b000000u;
const SIX_BIT_SCALE = vec4<f32>(1.0, 0x1p-8, 0x1p-16, 1.0);

fn six_bits(w: u32) -> vec4<f32> {
    let bits = vec4<u32>(w & 0x3fu, w & 0x3f00u, w & 0x3f0000u, (w >> 24u) & 0x3fu) | vec4<u32>(MANTISSA);
    return bitcast<vec4<f32>>(bits) - (vec4<f32>(8388608.0) + 32.0 / SIX_BIT_SCALE); // exact
}

// section gather, uses: canvas/gather_sums types/read_vec4 type.six_bits
// Part v of a block's eight is vector v of low nibbles: 16 values in the low halves of its bytes, and the 16 values 64
// later in the high halves.
fn low_column(t: u32) -> u32 {
    let v = t & 7u;
    return 256u * (t >> 3u) + 128u * (v >> 2u) + 32u * ((v >> 1u) & 1u) + 16u * (v & 1u);
}
fn high_column(t: u32) -> u32 { return low_column(t) + 64u; }

struct Part { q: vec4<u32>, high: vec4<u32>, scales: vec2<u32>, scale: u32 }

fn fetch_part(at: u32, t: u32) -> Part {
    let block = at / 16u + 14u * (t >> 3u);
    let v = t & 7u;
    let n = v >> 2u;
    let scales = weights[block + 12u];
    return Part(weights[block + v], weights[block + 8u + 2u * n + (v & 1u)], select(scales.xy, scales.zw, n == 1u), weights[block + 13u].x);
}

fn add(part: Part, t: u32, weight: f32) {
    let v = t & 7u;
    let shift = 24u - 8u * (v & 3u); // moves the part's scale to the upper byte of its word
    let scale = weight * f16_value(part.scale & 0xffffu);
    let scales = scale * vec2<f32>(vec2<i32>(part.scales << vec2<u32>(shift)) >> vec2<u32>(24u));
    let low = scales.x * SIX_BIT_SCALE;
    let high = scales.y * SIX_BIT_SCALE;
    let pairs = part.high >> vec4<u32>(v & 2u);
    let m = vec4<u32>(0x0f0f0f0fu);
    let l = (part.q & m) | ((pairs << vec4<u32>(4u)) & ~m);
    let h = ((part.q >> vec4<u32>(4u)) & m) | (pairs & ~m);
    a0 = fma(low, six_bits(l.x), a0);
    a1 = fma(low, six_bits(l.y), a1);
    a2 = fma(low, six_bits(l.z), a2);
    a3 = fma(low, six_bits(l.w), a3);
    b0 = fma(high, six_bits(h.x), b0);
    b1 = fma(high, six_bits(h.y), b1);
    b2 = fma(high, six_bits(h.z), b2);
    b3 = fma(high, six_bits(h.w), b3);
}

// section sixteen, uses: types/read_vec4 type.six_bits
// Sixteen values share a scale, a vector of low nibbles and one of high bit pairs.
fn sixteen(at: u32, u: u32) {
    let block = at / 16u + 14u * (u >> 4u);
    let i = u & 15u; // 8n + 2r + p
    let n = i >> 3u;
    let r = (i >> 1u) & 3u;
    let p = i & 1u;
    let low = weights[block + 4u * n + 2u * (r & 1u) + p] >> vec4<u32>(4u * (r >> 1u));
    let high = weights[block + 8u + 2u * n + p] >> vec4<u32>(2u * r);
    let part = f32(i32(weights[block + 12u][i >> 2u] << (24u - 8u * (i & 3u))) >> 24u);
    let scale = f16_value(weights[block + 13u].x & 0xffffu) * part * SIX_BIT_SCALE;
    let m = vec4<u32>(0x0f0f0f0fu);
    let q = (low & m) | ((high << vec4<u32>(4u)) & ~m);
    w0 = scale * six_bits(q.x);
    w1 = scale * six_bits(q.y);
    w2 = scale * six_bits(q.z);
    w3 = scale * six_bits(q.w);
}

// section repack
// Blocks of 210 bytes become 56 words: 52 as they are, the f16 scale, padding.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) thread: vec3<u32>) {
    if (thread.x >= params.rows * params.row_words) { return; }
    let row = thread.x / params.row_words;
    let i = thread.x % params.row_words;
    let block = row * params.raw_bytes + 210u * (i / 56u);
    let k = i % 56u;
    let word = raw_word(block + 4u * min(k, 52u));
    piece[(params.first_row + row) * params.row_words + i] = select(select(0u, word & 0xffffu, k == 52u), word, k < 52u);
}
