// Q5_K: 256 values in 176 bytes, 11 vectors; vector 0: scales and minima as in Q4_K; vectors 1 and 2: fifth bits, bit g
// of byte l belongs to value l of group g; vectors 3..10: nibbles as in Q4_K. value = scale * q - minimum.

// section unpack, uses: types/read_bytes types/eight types/k_scales
fn unpack8(at: u32, u: u32) {
    let b = at + 176u * (u >> 5u);
    let g = (u >> 2u) & 7u;
    let d = word_at(b);
    let s = k_scales(b + 4u, g) * vec2<f32>(f16_value(d & 0xffffu), f16_value(d >> 16u));
    let l = 8u * (u & 3u);
    let q = b + 48u + 32u * (g >> 1u) + l;
    let shift = 4u * (g & 1u);
    wa = s.x * (fields(word_at(q), shift, 15u) + 16.0 * fields(word_at(b + 16u + l), g, 1u)) - s.y;
    wb = s.x * (fields(word_at(q + 4u), shift, 15u) + 16.0 * fields(word_at(b + 20u + l), g, 1u)) - s.y;
}

// section dot, uses: product/dot_vec4 types/read_vec4 types/k_scale_pair
// Unit v of a block is vector 3 + v, nibbles as in Q4_K.
const BLOCK = 11u;

fn low_index(u: u32) -> u32 { return 4u * (u >> 1u) + (u & 1u); }
fn high_index(u: u32) -> u32 { return low_index(u) + 2u; }

const AHEAD = 0u;

struct Unit { head: vec4<u32>, fifth: vec4<u32>, q: vec4<u32> }

fn fetch_unit(row: u32, u: u32) -> Unit {
    let block = row + (u >> 3u) * BLOCK;
    let v = u & 7u;
    return Unit(weights[block], weights[block + 1u + (v & 1u)] >> vec4<u32>(v & 6u), weights[block + 3u + v]);
}

fn dot_unit(unit: Unit, u: u32) -> f32 {
    let s = k_scale_pair(unit.head, u & 6u);
    let mask = vec4<u32>(0x0f0f0f0fu);
    let bit = vec4<u32>(0x10101010u);
    let l = dot16((unit.q & mask) | ((unit.fifth << vec4<u32>(4u)) & bit), x_low) * s_low.x;
    let h = dot16(((unit.q >> vec4<u32>(4u)) & mask) | ((unit.fifth << vec4<u32>(3u)) & bit), x_high) * s_high.x;
    return f16_value(unit.head.x & 0xffffu) * (s.x * l + s.y * h) - f16_value(unit.head.x >> 16u) * (s.z * s_low.y + s.w * s_high.y);
}

// section wide, uses: product/wide types/read_vec4 types/k_scale_pair
// Unit v as in dot.
const BLOCK = 11u;

fn offset_low(v: u32) -> u32 { return 64u * (v >> 1u) + 16u * (v & 1u); }
fn offset_high(v: u32) -> u32 { return offset_low(v) + 32u; }

fn five(q: u32, shift: u32, fifth: u32, bit: u32) -> vec4<f32> {
    return nibbles(q, shift) + 16.0 * vec4<f32>((vec4<u32>(fifth, fifth >> 8u, fifth >> 16u, fifth >> 24u) >> vec4<u32>(bit)) & vec4<u32>(1u));
}

fn dot32(block: u32, v: u32) -> f32 {
    let head = weights[block];
    let f = weights[block + 1u + (v & 1u)];
    let q = weights[block + 3u + v];
    let g = v & 6u;
    let s = k_scale_pair(head, g);
    let d = f16_value(head.x & 0xffffu);
    let minimum = f16_value(head.x >> 16u);
    let l = dot(five(q.x, 0u, f.x, g), x0) + dot(five(q.y, 0u, f.y, g), x1) + dot(five(q.z, 0u, f.z, g), x2) +
            dot(five(q.w, 0u, f.w, g), x3);
    let h = dot(five(q.x, 4u, f.x, g + 1u), x4) + dot(five(q.y, 4u, f.y, g + 1u), x5) +
            dot(five(q.z, 4u, f.z, g + 1u), x6) + dot(five(q.w, 4u, f.w, g + 1u), x7);
    return d * (s.x * l + s.y * h) - minimum * (s.z * sum_low + s.w * sum_high);
}

// section run, uses: product/run types/read_vec4 types/k_scale_pair
const FIRST_V = 1u;

struct Run { scale: vec2<f32>, minimum: vec2<f32>, q: vec4<u32>, fifth: vec4<u32> }

fn fetch(at: u32, s: u32, p: u32) -> Run {
    let block = at / 16u + 11u * (s >> 2u);
    let i = s & 3u;
    let head = weights[block];
    let scales = k_scale_pair(head, 2u * i);
    return Run(f16_value(head.x & 0xffffu) * scales.xy, f16_value(head.x >> 16u) * scales.zw,
               weights[block + 3u + 2u * i + p], weights[block + 1u + p] >> vec4<u32>(2u * i));
}

fn unpack_quarter(run: ptr<function, Run>, j: u32) {
    let w = (*run).q.x;
    let fifth = (*run).fifth.x;
    wa = (*run).scale.x * vec4<f32>(unpack4xU8((w & 0x0f0f0f0fu) | ((fifth & 0x01010101u) << 4u))) - (*run).minimum.x;
    wb = (*run).scale.y * vec4<f32>(unpack4xU8(((w >> 4u) & 0x0f0f0f0fu) | ((fifth & 0x02020202u) << 3u))) - (*run).minimum.y;
    (*run).q = (*run).q.yzwx;
    (*run).fifth = (*run).fifth.yzwx;
}

// section tile, uses: product/tile8_weights types/read_vec4 types/k_scale_min
// 64 values as in Q4_K.
const PARTS = 2u;
const HAS_MIN = true;
const TWO_SCALES = false;

struct Raw { head: vec4<u32>, fifth: vec4<u32>, q: vec4<u32> }

fn fetch(row: u32, s: u32, part: u32) -> Raw {
    let block = (row * (params.k / 256u) + (s >> 2u)) * 11u;
    return Raw(weights[block], weights[block + 1u + part], weights[block + 3u + 2u * (s & 3u) + part]);
}

fn unpack(o: u32, s: u32, part: u32, raw: Raw) {
    let u = s & 3u;
    let fifth = raw.fifth >> vec4<u32>(2u * u);
    store16(o, part, (raw.q & vec4<u32>(0x0f0f0f0fu)) | ((fifth & vec4<u32>(0x01010101u)) << vec4<u32>(4u)));
    store16(o, part + 2u,
          ((raw.q >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu)) | ((fifth & vec4<u32>(0x02020202u)) << vec4<u32>(3u)));
    w_scale[o * 2u + part] = k_scale_min(raw.head, 2u * u + part);
}
