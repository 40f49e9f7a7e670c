// Q5_K: 11 vectors a block; scales, two of fifth bits (bit g of a byte belongs to group g), nibbles as Q4_K.
const PARTS = 2u;
const HAS_MIN = true;
const TWO_SCALES = false;

struct Raw { head: vec4<u32>, fifth: vec4<u32>, q: vec4<u32> }

fn fetch(row: u32, s: u32, part: u32) -> Raw {
    let block = (row * (step.k / 256u) + (s >> 2u)) * 11u;
    return Raw(weights[block], weights[block + 1u + part], weights[block + 3u + 2u * (s & 3u) + part]);
}

fn unpack(o: u32, s: u32, part: u32, raw: Raw) {
    let u = s & 3u;
    let fifth = raw.fifth >> vec4<u32>(2u * u);
    put16(o, part, (raw.q & vec4<u32>(0x0f0f0f0fu)) | ((fifth & vec4<u32>(0x01010101u)) << vec4<u32>(4u)));
    put16(o, part + 2u,
          ((raw.q >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu)) | ((fifth & vec4<u32>(0x02020202u)) << vec4<u32>(3u)));
    w_scale[o * 2u + part] = k_group(raw.head, 2u * u + part);
}
