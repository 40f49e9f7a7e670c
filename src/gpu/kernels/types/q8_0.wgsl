// Q8_0: 32 values in 34 bytes; f16 scale, 32 int8.

// section unpack, uses: types/read_bytes types/eight
fn unpack8(at: u32, u: u32) {
    let b = at + 34u * (u >> 2u);
    let d = f16_at(b);
    let q = b + 2u + 8u * (u & 3u);
    wa = d * vec4<f32>(unpack4xI8(u32_at(q)));
    wb = d * vec4<f32>(unpack4xI8(u32_at(q + 4u)));
}

// section dot, uses: product/dot_blocks types/read_words
const AHEAD = 2u;

struct Unit { d: u32, low: vec4<u32>, high: vec4<u32> }

fn fetch_unit(row: u32, u: u32) -> Unit {
    let at = row + 34u * u;
    return Unit(u16_at(at), bytes16(at + 2u), bytes16(at + 18u));
}

fn dot_unit(unit: Unit, u: u32) -> f32 {
    return f16_value(unit.d) * (dot16(unit.low, x_low) * s_low.x + dot16(unit.high, x_high) * s_high.x);
}

// section run, uses: product/run types/read_words
// Two blocks at a time: the values of the second one are aligned.
const FIRST_V = 1u;

struct Run { scale: vec2<f32>, a: vec4<u32>, b: vec4<u32> }

fn fetch(at: u32, s: u32, p: u32) -> Run {
    let i = (at + 68u * s) / 4u;
    let x = i + 4u * p;
    let a = vec4<u32>(weights[x], weights[x + 1u], weights[x + 2u], weights[x + 3u]);
    let b = vec4<u32>(weights[x + 9u], weights[x + 10u], weights[x + 11u], weights[x + 12u]);
    let joined = (a >> vec4<u32>(16u)) | (vec4<u32>(a.yzw, weights[x + 4u]) << vec4<u32>(16u));
    return Run(vec2<f32>(f16_value(weights[i] & 0xffffu), f16_value(weights[i + 8u] >> 16u)), joined, b);
}

fn unpack_quarter(run: ptr<function, Run>, j: u32) {
    wa = (*run).scale.x * vec4<f32>(unpack4xI8((*run).a.x));
    wb = (*run).scale.y * vec4<f32>(unpack4xI8((*run).b.x));
    (*run).a = (*run).a.yzwx;
    (*run).b = (*run).b.yzwx;
}

// section tile, uses: product/tile8_weights types/read_words
const PARTS = 4u;
const HAS_MIN = false;
const TWO_SCALES = false;

struct Raw { at: u32, head: u32, q: Bytes }

fn fetch(row: u32, s: u32, part: u32) -> Raw {
    let b = 2u * s + (part >> 1u);
    let at = row * params.row_bytes + 34u * select(0u, b, b * 32u < params.k); // the last step may have one block only
    return Raw(at, weights[at >> 2u], fetch16(at + 2u + 16u * (part & 1u)));
}

fn unpack(o: u32, s: u32, part: u32, raw: Raw) {
    store16(o, part, join16(raw.q, raw.at + 2u));
    if ((part & 1u) == 0u) {
        let here = (2u * s + (part >> 1u)) * 32u < params.k;
        w_scale[o * 2u + (part >> 1u)] = vec2<u32>(bitcast<u32>(select(0.0, f16_value(u16_of(raw.head, raw.at)), here)), 0u);
    }
}
