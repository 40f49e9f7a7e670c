// Q4_1: 20 bytes per 32 values; f16 scale, f16 minimum, nibbles as Q4_0, no offset
const PARTS = 2u;
const HAS_MIN = true;
const TWO_SCALES = false;

struct Raw { at: u32, head: u32, q: Bytes }

fn fetch(row: u32, s: u32, part: u32) -> Raw { // blocks begin at multiples of 4
    let b = 2u * s + part;
    let at = row * step.row_bytes + 20u * select(0u, b, b * 32u < step.k); // the last step may be half empty
    return Raw(at, weights[at >> 2u], fetch16(at + 4u));
}

fn unpack(o: u32, s: u32, part: u32, raw: Raw) {
    let q = joined16(raw.q, raw.at + 4u);
    put16(o, 2u * part, q & vec4<u32>(0x0f0f0f0fu));
    put16(o, 2u * part + 1u, (q >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu));
    let scale = vec2<f32>(half(raw.head & 0xffffu), -half(raw.head >> 16u));
    w_scale[o * 2u + part] = bitcast<vec2<u32>>(select(vec2<f32>(), scale, (2u * s + part) * 32u < step.k));
}
