// Q5_0: 32 values in 22 bytes; f16 scale, 32 fifth bits, nibbles as in Q4_0; value = scale * (q - 16).

// section unpack, uses: types/read_bytes types/eight
fn unpack8(at: u32, u: u32) {
    let b = at + 22u * (u >> 2u);
    let d = f16_at(b);
    let high = u32_at(b + 2u);
    let q = b + 6u + 8u * (u & 1u);
    let shift = 2u * (u & 2u);
    let n = 8u * (u & 3u);
    wa = d * (fields(u32_at(q), shift, 15u) + bits(high, n, 16.0) - 16.0);
    wb = d * (fields(u32_at(q + 4u), shift, 15u) + bits(high, n + 4u, 16.0) - 16.0);
}

// section dot, uses: product/dot_blocks types/read_words common/int8_words
const AHEAD = 3u;

struct Unit { d: u32, fifth: u32, q: vec4<u32> }

fn fetch_unit(row: u32, u: u32) -> Unit {
    let at = row + 22u * u;
    return Unit(u16_at(at), u32_at(at + 2u), bytes16(at + 6u));
}

fn dot_unit(unit: Unit, u: u32) -> f32 {
    let mask = vec4<u32>(0x0f0f0f0fu);
    let l = dot16((unit.q & mask) | spread_bits(unit.fifth), x_low) * s_low.x - 16.0 * s_low.y;
    let h = dot16(((unit.q >> vec4<u32>(4u)) & mask) | spread_bits(unit.fifth >> 16u), x_high) * s_high.x - 16.0 * s_high.y;
    return f16_value(unit.d) * (l + h);
}

// section run, uses: product/run types/read_words
const FIRST_V = 2u;

struct Run { scale: f32, fifth: u32, q: vec4<u32> }

fn fetch(at: u32, s: u32, p: u32) -> Run {
    let b = at + 22u * (2u * s + p);
    let i = b / 4u;
    let odd = (b & 2u) != 0u;
    let w0 = weights[i];
    let w1 = weights[i + 1u];
    let q = vec4<u32>(weights[i + 2u], weights[i + 3u], weights[i + 4u], weights[i + 5u]);
    let joined = (vec4<u32>(w1, q.xyz) >> vec4<u32>(16u)) | (q << vec4<u32>(16u));
    return Run(f16_value(select(w0, w0 >> 16u, odd) & 0xffffu), select((w0 >> 16u) | (w1 << 16u), w1, odd), select(joined, q, odd));
}

// Bits 0..3, one per byte, as bit 4.
fn spread4(bits: u32) -> u32 { return ((bits & 15u) * 0x02040810u) & 0x10101010u; }

fn unpack_quarter(run: ptr<function, Run>, j: u32) {
    let w = (*run).q.x;
    wa = (*run).scale * (vec4<f32>(unpack4xU8((w & 0x0f0f0f0fu) | spread4((*run).fifth))) - 16.0);
    wb = (*run).scale * (vec4<f32>(unpack4xU8(((w >> 4u) & 0x0f0f0f0fu) | spread4((*run).fifth >> 16u))) - 16.0);
    (*run).q = (*run).q.yzwx;
    (*run).fifth >>= 4u;
}

// section tile, uses: product/tile8_weights types/read_words common/int8_words
const PARTS = 2u;
const HAS_MIN = false;
const TWO_SCALES = false;

struct Raw { at: u32, head: u32, next: u32, q: Bytes }

fn fetch(row: u32, s: u32, part: u32) -> Raw {
    let b = 2u * s + part;
    let at = row * params.row_bytes + 22u * select(0u, b, b * 32u < params.k); // the last step may have one block only
    return Raw(at, weights[at >> 2u], weights[(at >> 2u) + 1u], fetch16(at + 6u));
}

fn unpack(o: u32, s: u32, part: u32, raw: Raw) {
    let even = (raw.at & 2u) == 0u;
    let fifth = select(raw.next, (raw.head >> 16u) | (raw.next << 16u), even);
    let q = join16(raw.q, raw.at + 6u);
    store16(o, 2u * part, signed_bytes((q & vec4<u32>(0x0f0f0f0fu)) | spread_bits(fifth), 0x10101010u, 14u));
    store16(o, 2u * part + 1u,
          signed_bytes(((q >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu)) | spread_bits(fifth >> 16u), 0x10101010u, 14u));
    let here = (2u * s + part) * 32u < params.k;
    w_scale[o * 2u + part] = vec2<u32>(bitcast<u32>(select(0.0, f16_value(u16_of(raw.head, raw.at)), here)), 0u);
}
