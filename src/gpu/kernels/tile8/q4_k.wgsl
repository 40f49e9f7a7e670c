// Q4_K: 9 vectors a block; scales, then nibbles. 64 values are the low nibbles of two vectors, then the high ones.
const PARTS = 2u;
const HAS_MIN = true;
const TWO_SCALES = false;

struct Raw { head: vec4<u32>, q: vec4<u32> }

fn fetch(row: u32, s: u32, part: u32) -> Raw {
    let block = (row * (step.k / 256u) + (s >> 2u)) * 9u;
    return Raw(weights[block], weights[block + 1u + 2u * (s & 3u) + part]);
}

fn unpack(o: u32, s: u32, part: u32, raw: Raw) {
    put16(o, part, raw.q & vec4<u32>(0x0f0f0f0fu));
    put16(o, part + 2u, (raw.q >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu));
    w_scale[o * 2u + part] = k_group(raw.head, 2u * (s & 3u) + part);
}
