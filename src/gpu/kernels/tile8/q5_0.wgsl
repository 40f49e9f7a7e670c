// Q5_0: 22 bytes per 32 values; f16 scale, 32 fifth bits, nibbles, offset 16
const PARTS = 2u;
const HAS_MIN = false;
const TWO_SCALES = false;

fn fill(o: u32, row: u32, s: u32, part: u32) {
    let b = 2u * s + part;
    let here = b * 32u < step.k; // the last step may be half empty
    let at = row * step.row_bytes + 22u * select(0u, b, here);
    let fifth = u32_at(at + 2u);
    let q = bytes16(at + 6u);
    put16(o, 2u * part, less_half((q & vec4<u32>(0x0f0f0f0fu)) | spread(fifth), 0x10101010u, 14u));
    put16(o, 2u * part + 1u, less_half(((q >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu)) | spread(fifth >> 16u), 0x10101010u, 14u));
    w_scale[o * 2u + part] = vec2<u32>(bitcast<u32>(select(0.0, half(u16_at(at)), here)), 0u);
}
