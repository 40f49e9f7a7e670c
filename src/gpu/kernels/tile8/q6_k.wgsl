// Q6_K: 14 vectors a block (padded when uploaded); 8 of low nibbles, 4 of high bit pairs, 16 int8 scales, scale.
// Value 128n + 32r + l: nibble r/2 of byte 64n + 32(r%2) + l, bits 2r of high byte 32n + l, minus 32.
const PARTS = 4u;
const HAS_MIN = false;
const TWO_SCALES = true;

fn fill(o: u32, row: u32, s: u32, part: u32) {
    let block = (row * (step.k / 256u) + (s >> 2u)) * 14u;
    let n = (s >> 1u) & 1u;
    let r = 2u * (s & 1u) + (part >> 1u);
    let h = part & 1u;
    let low = (weights[block + 4u * n + 2u * (r & 1u) + h] >> vec4<u32>(4u * (r >> 1u))) & vec4<u32>(0x0f0f0f0fu);
    let high = (weights[block + 8u + 2u * n + h] >> vec4<u32>(2u * r)) & vec4<u32>(0x03030303u);
    put16(o, part, less_half(low | (high << vec4<u32>(4u)), 0x20202020u, 6u));
    if (h == 0u) {
        let i = 8u * n + 2u * r; // scale of the first half
        let two = i32(weights[block + 12u][i >> 2u] << (16u - 8u * (i & 2u))); // both in the upper two bytes
        w_scale[o * 2u + (part >> 1u)] = vec2<u32>(bitcast<u32>(half(weights[block + 13u].x & 0xffffu)),
                                                   (u32((two << 8u) >> 24u) & 0xffffu) | u32((two >> 24u) << 16u));
    }
}
