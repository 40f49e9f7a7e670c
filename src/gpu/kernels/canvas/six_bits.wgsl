// Four values of Q6_K, less 32, from the lower six bits of bytes: as the mantissa of 2^23 + x, which costs fewer instructions
// than conversions. Three of them stand where they stood; TIMES is what makes up for it.
const MANTISSA = 0x4b000000u;
const TIMES = vec4<f32>(1.0, 0x1p-8, 0x1p-16, 1.0);

fn six_bits(w: u32) -> vec4<f32> {
    let bits = vec4<u32>(w & 0x3fu, w & 0x3f00u, w & 0x3f0000u, (w >> 24u) & 0x3fu) | vec4<u32>(MANTISSA);
    return bitcast<vec4<f32>>(bits) - (vec4<f32>(8388608.0) + 32.0 / TIMES); // exact
}
