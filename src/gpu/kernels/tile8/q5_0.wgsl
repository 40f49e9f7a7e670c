// Q5_0: 22 bytes per 32 values; f16 scale, 32 fifth bits, nibbles, offset 16
const PARTS = 2u;
const HAS_MIN = false;
const TWO_SCALES = false;

struct Raw { at: u32, head: u32, next: u32, q: Bytes }

fn fetch(row: u32, s: u32, part: u32) -> Raw {
    let b = 2u * s + part;
    let at = row * step.row_bytes + 22u * select(0u, b, b * 32u < step.k); // the last step may be half empty
    return Raw(at, weights[at >> 2u], weights[(at >> 2u) + 1u], fetch16(at + 6u));
}

fn unpack(o: u32, s: u32, part: u32, raw: Raw) {
    let even = (raw.at & 2u) == 0u;
    let fifth = select(raw.next, (raw.head >> 16u) | (raw.next << 16u), even);
    let q = joined16(raw.q, raw.at + 6u);
    put16(o, 2u * part, less_half((q & vec4<u32>(0x0f0f0f0fu)) | spread(fifth), 0x10101010u, 14u));
    put16(o, 2u * part + 1u,
          less_half(((q >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu)) | spread(fifth >> 16u), 0x10101010u, 14u));
    let here = (2u * s + part) * 32u < step.k;
    w_scale[o * 2u + part] = vec2<u32>(bitcast<u32>(select(0.0, half(half_of(raw.head, raw.at)), here)), 0u);
}
