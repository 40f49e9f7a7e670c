// Q4_K: 256 values in 144 bytes, 9 vectors; vector 0: f16 scale of the scales and of the minima, 12 bytes of 6-bit
// scales and minima of 8 groups of 32; vectors 1..8: nibbles. Groups 2i and 2i + 1 are the low and the high nibbles of
// the same 32 bytes. value = scale * q - minimum.

// section unpack, uses: types/read_bytes types/eight types/k_scales
fn unpack8(at: u32, u: u32) {
    let b = at + 144u * (u >> 5u);
    let g = (u >> 2u) & 7u;
    let d = word_at(b);
    let s = k_scales(b + 4u, g) * vec2<f32>(f16_value(d & 0xffffu), f16_value(d >> 16u));
    let q = b + 16u + 32u * (g >> 1u) + 8u * (u & 3u);
    let shift = 4u * (g & 1u);
    wa = s.x * fields(word_at(q), shift, 15u) - s.y;
    wb = s.x * fields(word_at(q + 4u), shift, 15u) - s.y;
}

// section dot, uses: product/dot_vec4 types/read_vec4 types/k_scale_pair
// Unit v of a block is vector 1 + v: its low nibbles belong to group 2(v / 2), its high ones to the next group.
const BLOCK = 9u;

fn low_index(u: u32) -> u32 { return 4u * (u >> 1u) + (u & 1u); }
fn high_index(u: u32) -> u32 { return low_index(u) + 2u; }

const AHEAD = 3u;

struct Unit { head: vec4<u32>, q: vec4<u32> }

fn fetch_unit(row: u32, u: u32) -> Unit {
    let block = row + (u >> 3u) * BLOCK;
    return Unit(weights[block], weights[block + 1u + (u & 7u)]);
}

fn dot_unit(unit: Unit, u: u32) -> f32 {
    let s = k_scale_pair(unit.head, u & 6u);
    let mask = vec4<u32>(0x0f0f0f0fu);
    let l = dot16(unit.q & mask, x_low) * s_low.x;
    let h = dot16((unit.q >> vec4<u32>(4u)) & mask, x_high) * s_high.x;
    return f16_value(unit.head.x & 0xffffu) * (s.x * l + s.y * h) - f16_value(unit.head.x >> 16u) * (s.z * s_low.y + s.w * s_high.y);
}

// section wide, uses: product/wide types/read_vec4 types/k_scale_pair
// Unit v as in dot.
const BLOCK = 9u;

fn offset_low(v: u32) -> u32 { return 64u * (v >> 1u) + 16u * (v & 1u); }
fn offset_high(v: u32) -> u32 { return offset_low(v) + 32u; }

fn dot32(block: u32, v: u32) -> f32 {
    let head = weights[block];
    let q = weights[block + 1u + v];
    let g = v & 6u; // the even group
    let s = k_scale_pair(head, g);
    let d = f16_value(head.x & 0xffffu);
    let minimum = f16_value(head.x >> 16u);
    let l = dot(nibbles(q.x, 0u), x0) + dot(nibbles(q.y, 0u), x1) + dot(nibbles(q.z, 0u), x2) + dot(nibbles(q.w, 0u), x3);
    let h = dot(nibbles(q.x, 4u), x4) + dot(nibbles(q.y, 4u), x5) + dot(nibbles(q.z, 4u), x6) + dot(nibbles(q.w, 4u), x7);
    return d * (s.x * l + s.y * h) - minimum * (s.z * sum_low + s.w * sum_high);
}

// section run, uses: product/run types/read_vec4 types/k_scale_pair
const FIRST_V = 1u;

struct Run { scale: vec2<f32>, minimum: vec2<f32>, q: vec4<u32> }

fn fetch(at: u32, s: u32, p: u32) -> Run {
    let block = at / 16u + 9u * (s >> 2u);
    let i = s & 3u;
    let head = weights[block];
    let scales = k_scale_pair(head, 2u * i);
    return Run(f16_value(head.x & 0xffffu) * scales.xy, f16_value(head.x >> 16u) * scales.zw,
               weights[block + 1u + 2u * i + p]);
}

fn unpack_quarter(run: ptr<function, Run>, j: u32) {
    let w = (*run).q.x;
    wa = (*run).scale.x * low_nibbles(w) - (*run).minimum.x;
    wb = (*run).scale.y * high_nibbles(w) - (*run).minimum.y;
    (*run).q = (*run).q.yzwx;
}

// section tile, uses: product/tile8_weights types/read_vec4 types/k_scale_min
// 64 values are the low nibbles of two vectors, then their high nibbles.
const PARTS = 2u;
const HAS_MIN = true;
const TWO_SCALES = false;

struct Raw { head: vec4<u32>, q: vec4<u32> }

fn fetch(row: u32, s: u32, part: u32) -> Raw {
    let block = (row * (params.k / 256u) + (s >> 2u)) * 9u;
    return Raw(weights[block], weights[block + 1u + 2u * (s & 3u) + part]);
}

fn unpack(o: u32, s: u32, part: u32, raw: Raw) {
    store16(o, part, raw.q & vec4<u32>(0x0f0f0f0fu));
    store16(o, part + 2u, (raw.q >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu));
    w_scale[o * 2u + part] = k_scale_min(raw.head, 2u * (s & 3u) + part);
}
