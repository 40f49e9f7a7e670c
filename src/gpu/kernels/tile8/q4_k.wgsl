// Q4_K: 9 vectors a block; scales, then nibbles. 64 values are the low nibbles of two vectors, then the high ones.
const PARTS = 2u;
const HAS_MIN = true;
const TWO_SCALES = false;

fn fill(o: u32, row: u32, s: u32, part: u32) {
    let block = (row * (step.k / 256u) + (s >> 2u)) * 9u;
    let u = s & 3u;
    let head = weights[block];
    let q = weights[block + 1u + 2u * u + part];
    put16(o, part, q & vec4<u32>(0x0f0f0f0fu));
    put16(o, part + 2u, (q >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu));
    w_scale[o * 2u + part] = k_group(head, 2u * u + part);
}
