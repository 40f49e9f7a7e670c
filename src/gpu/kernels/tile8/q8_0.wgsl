// Q8_0: 34 bytes per 32 values; f16 scale, int8 each
const PARTS = 4u;
const HAS_MIN = false;
const TWO_SCALES = false;

fn fill(o: u32, row: u32, s: u32, part: u32) {
    let b = 2u * s + (part >> 1u);
    let here = b * 32u < step.k; // the last step may be half empty
    let at = row * step.row_bytes + 34u * select(0u, b, here);
    put16(o, part, bytes16(at + 2u + 16u * (part & 1u)));
    if ((part & 1u) == 0u) { w_scale[o * 2u + (part >> 1u)] = vec2<u32>(bitcast<u32>(select(0.0, half(u16_at(at)), here)), 0u); }
}
