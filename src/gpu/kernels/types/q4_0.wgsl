// Q4_0: 32 values in 18 bytes; f16 scale, 16 bytes of nibbles: low nibbles are values 0..15, high ones 16..31; value =
// scale * (q - 8).

// section unpack, uses: types/read_bytes types/eight
fn unpack8(at: u32, u: u32) {
    let b = at + 18u * (u >> 2u);
    let d = f16_at(b);
    let q = b + 2u + 8u * (u & 1u);
    let shift = 2u * (u & 2u);
    wa = d * (fields(u32_at(q), shift, 15u) - 8.0);
    wb = d * (fields(u32_at(q + 4u), shift, 15u) - 8.0);
}

// section dot, uses: product/dot_blocks types/read_words
const AHEAD = 3u;

struct Unit { d: u32, q: vec4<u32> }

fn fetch_unit(row: u32, u: u32) -> Unit {
    let at = row + 18u * u;
    return Unit(u16_at(at), bytes16(at + 2u));
}

fn dot_unit(unit: Unit, u: u32) -> f32 {
    let mask = vec4<u32>(0x0f0f0f0fu);
    let l = dot16(unit.q & mask, x_low) * s_low.x - 8.0 * s_low.y;
    let h = dot16((unit.q >> vec4<u32>(4u)) & mask, x_high) * s_high.x - 8.0 * s_high.y;
    return f16_value(unit.d) * (l + h);
}

// section run, uses: product/run types/read_words
const FIRST_V = 2u;

struct Run { scale: f32, q: vec4<u32> }

fn fetch(at: u32, s: u32, p: u32) -> Run {
    let b = at + 18u * (2u * s + p);
    let i = b / 4u;
    let odd = (b & 2u) != 0u;
    let w = weights[i];
    let q = vec4<u32>(weights[i + 1u], weights[i + 2u], weights[i + 3u], weights[i + 4u]);
    let joined = (vec4<u32>(w, q.xyz) >> vec4<u32>(16u)) | (q << vec4<u32>(16u));
    return Run(f16_value(select(w, w >> 16u, odd) & 0xffffu), select(joined, q, odd));
}

fn unpack_quarter(run: ptr<function, Run>, j: u32) {
    let w = (*run).q.x;
    wa = (*run).scale * (low_nibbles(w) - 8.0);
    wb = (*run).scale * (high_nibbles(w) - 8.0);
    (*run).q = (*run).q.yzwx;
}

// section tile, uses: product/tile8_weights types/read_words common/int8_words
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
    store16(o, 2u * part, signed_bytes(q & vec4<u32>(0x0f0f0f0fu), 0x08080808u, 30u));
    store16(o, 2u * part + 1u, signed_bytes((q >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu), 0x08080808u, 30u));
    let here = (2u * s + part) * 32u < params.k;
    w_scale[o * 2u + part] = vec2<u32>(bitcast<u32>(select(0.0, f16_value(u16_of(raw.head, raw.at)), here)), 0u);
}
