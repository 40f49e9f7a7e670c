// IQ4_NL: 32 values in 18 bytes; f16 scale, nibbles as in Q4_0, which index a table.

// section unpack, uses: types/read_bytes types/eight types/iq4_table
fn unpack8(at: u32, u: u32) {
    let b = at + 18u * (u >> 2u);
    let d = f16_at(b);
    let q = b + 2u + 8u * (u & 1u);
    wa = d * iq4(u32_at(q), 2u * (u & 2u));
    wb = d * iq4(u32_at(q + 4u), 2u * (u & 2u));
}

// section dot, uses: product/dot_blocks types/read_words types/iq4_bytes
const AHEAD = 3u;

struct Unit { d: u32, q: vec4<u32> }

fn fetch_unit(row: u32, u: u32) -> Unit {
    let at = row + 18u * u;
    return Unit(u16_at(at), bytes16(at + 2u));
}

fn dot_unit(unit: Unit, u: u32) -> f32 {
    let l = dot16(iq4_bytes(unit.q), x_low) * s_low.x;
    let h = dot16(iq4_bytes(unit.q >> vec4<u32>(4u)), x_high) * s_high.x;
    return f16_value(unit.d) * (l + h);
}

// section tile, uses: product/tile8_weights types/read_words types/iq4_bytes
const PARTS = 2u;
const HAS_MIN = false;
const TWO_SCALES = false;

struct Raw { at: u32, head: u32, q: Bytes }

fn fetch(row: u32, s: u32, part: u32) -> Raw {
    let b = 2u * s + part;
    let at = row * params.row_bytes + 18u * select(0u, b, b * 32u < params.k); // the last step may have one block only
    return Raw(at, weights[at >> 2u], fetch16(at + 2u));
}

fn unpack(o: u32, s: u32, part: u32, raw: Raw) {
    let q = join16(raw.q, raw.at + 2u);
    store16(o, 2u * part, iq4_bytes(q));
    store16(o, 2u * part + 1u, iq4_bytes(q >> vec4<u32>(4u)));
    let here = (2u * s + part) * 32u < params.k;
    w_scale[o * 2u + part] = vec2<u32>(bitcast<u32>(select(0.0, f16_value(u16_of(raw.head, raw.at)), here)), 0u);
}
