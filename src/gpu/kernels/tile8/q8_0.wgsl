// Q8_0: 34 bytes per 32 values; f16 scale, int8 each
const PARTS = 4u;
const HAS_MIN = false;
const TWO_SCALES = false;

struct Raw { at: u32, head: u32, q: Bytes }

fn fetch(row: u32, s: u32, part: u32) -> Raw {
    let b = 2u * s + (part >> 1u);
    let at = row * step.row_bytes + 34u * select(0u, b, b * 32u < step.k); // the last step may be half empty
    return Raw(at, weights[at >> 2u], fetch16(at + 2u + 16u * (part & 1u)));
}

fn unpack(o: u32, s: u32, part: u32, raw: Raw) {
    put16(o, part, joined16(raw.q, raw.at + 2u));
    if ((part & 1u) == 0u) {
        let here = (2u * s + (part >> 1u)) * 32u < step.k;
        w_scale[o * 2u + (part >> 1u)] = vec2<u32>(bitcast<u32>(select(0.0, half(half_of(raw.head, raw.at)), here)), 0u);
    }
}
