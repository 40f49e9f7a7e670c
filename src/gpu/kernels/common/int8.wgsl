// Values as int8, in groups of 32: scale d = max|x| / 127, integers round(x / d), and d times their sum, bit for bit as
// the CPU computes them. Magnitudes are compared as bits, where NaN is above infinity and is not lost.
fn max_bits(x: vec4<f32>) -> u32 {
    let bits = bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu);
    return max(max(bits.x, bits.y), max(bits.z, bits.w));
}

fn round_half_away(x: f32) -> i32 {
    return i32(x + select(0.49999997, -0.49999997, x < 0.0)); // ties away from zero
}

fn is_finite(largest: u32) -> bool { return largest < 0x7f800000u; }
fn is_usable(largest: u32) -> bool { return is_finite(largest) && largest >= 0x0d800000u; } // 2^-100: below it 127 / largest overflows

// Four values of a group whose largest magnitude has the bits `largest`.
fn quantize4(x: vec4<f32>, largest: u32) -> vec4<i32> {
    if (!is_usable(largest)) { return vec4<i32>(); }
    let scaled = x * (127.0 / bitcast<f32>(largest));
    let q = vec4<i32>(round_half_away(scaled.x), round_half_away(scaled.y), round_half_away(scaled.z), round_half_away(scaled.w));
    return clamp(q, vec4<i32>(-127), vec4<i32>(127));
}

fn pack_bytes(q: vec4<i32>) -> u32 {
    let bytes = bitcast<vec4<u32>>(q) & vec4<u32>(255u);
    return bytes.x | (bytes.y << 8u) | (bytes.z << 16u) | (bytes.w << 24u);
}

// d, and d times the sum of the integers. A NaN or infinity makes the whole group NaN.
fn scale_and_sum(largest: u32, sum: i32) -> vec2<u32> {
    let d = select(0.0, bitcast<f32>(largest) / 127.0, is_usable(largest));
    return select(vec2<u32>(0x7fc00000u), bitcast<vec2<u32>>(vec2<f32>(d, d * f32(sum))), is_finite(largest));
}
