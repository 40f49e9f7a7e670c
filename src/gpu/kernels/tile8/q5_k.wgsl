// Q5_K: 11 vectors a block; scales, two of fifth bits (bit g of a byte belongs to group g), nibbles as Q4_K.
const PARTS = 2u;
const HAS_MIN = true;
const TWO_SCALES = false;

fn fill(o: u32, row: u32, s: u32, part: u32) {
    let block = (row * (step.k / 256u) + (s >> 2u)) * 11u;
    let u = s & 3u;
    let head = weights[block];
    let fifth = weights[block + 1u + part] >> vec4<u32>(2u * u);
    let q = weights[block + 3u + 2u * u + part];
    put16(o, part, (q & vec4<u32>(0x0f0f0f0fu)) | ((fifth & vec4<u32>(0x01010101u)) << vec4<u32>(4u)));
    put16(o, part + 2u, ((q >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu)) | ((fifth & vec4<u32>(0x02020202u)) << vec4<u32>(3u)));
    w_scale[o * 2u + part] = k_group(head, 2u * u + part);
}
