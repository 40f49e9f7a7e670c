// Q5_1: 32 values in 24 bytes; f16 scale, f16 minimum, 32 fifth bits, nibbles as in Q4_0; value = scale * q + minimum.

// section unpack, uses: types/read_bytes types/eight
fn unpack8(at: u32, u: u32) {
    let b = at + 24u * (u >> 2u);
    let d = f16_at(b);
    let m = f16_at(b + 2u);
    let high = u32_at(b + 4u);
    let q = b + 8u + 8u * (u & 1u);
    let shift = 2u * (u & 2u);
    let n = 8u * (u & 3u);
    wa = d * (fields(u32_at(q), shift, 15u) + bits(high, n, 16.0)) + m;
    wb = d * (fields(u32_at(q + 4u), shift, 15u) + bits(high, n + 4u, 16.0)) + m;
}

// section dot, uses: product/dot_blocks types/read_words common/int8_words
const AHEAD = 3u;

struct Unit { d: u32, minimum: u32, fifth: u32, q: vec4<u32> }

fn fetch_unit(row: u32, u: u32) -> Unit {
    let at = row + 24u * u;
    return Unit(u16_at(at), u16_at(at + 2u), u32_at(at + 4u), bytes16(at + 8u));
}

fn dot_unit(unit: Unit, u: u32) -> f32 {
    let mask = vec4<u32>(0x0f0f0f0fu);
    let l = dot16((unit.q & mask) | spread_bits(unit.fifth), x_low) * s_low.x;
    let h = dot16(((unit.q >> vec4<u32>(4u)) & mask) | spread_bits(unit.fifth >> 16u), x_high) * s_high.x;
    return f16_value(unit.d) * (l + h) + f16_value(unit.minimum) * (s_low.y + s_high.y);
}

// section tile, uses: product/tile8_weights types/read_words common/int8_words
const PARTS = 2u;
const HAS_MIN = true;
const TWO_SCALES = false;

struct Raw { at: u32, head: u32, fifth: u32, q: Bytes }

fn fetch(row: u32, s: u32, part: u32) -> Raw { // blocks begin at multiples of 4
    let b = 2u * s + part;
    let at = row * params.row_bytes + 24u * select(0u, b, b * 32u < params.k); // the last step may have one block only
    return Raw(at, weights[at >> 2u], weights[(at >> 2u) + 1u], fetch16(at + 8u));
}

fn unpack(o: u32, s: u32, part: u32, raw: Raw) {
    let q = join16(raw.q, raw.at + 8u);
    store16(o, 2u * part, (q & vec4<u32>(0x0f0f0f0fu)) | spread_bits(raw.fifth));
    store16(o, 2u * part + 1u, ((q >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu)) | spread_bits(raw.fifth >> 16u));
    let scale = vec2<f32>(f16_value(raw.head & 0xffffu), -f16_value(raw.head >> 16u));
    w_scale[o * 2u + part] = bitcast<vec2<u32>>(select(vec2<f32>(), scale, (2u * s + part) * 32u < params.k));
}
