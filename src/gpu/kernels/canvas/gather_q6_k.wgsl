// Q6_K for soft_gather: 14 vectors a block (padded when uploaded); 8 of low nibbles, 4 of high bit pairs, 16 int8 scales, scale.
// Part v of a block's eight is vector v of low nibbles: those of 16 values, and in the upper halves those of 16 values 64 further.
fn low_column(t: u32) -> u32 {
    let v = t & 7u;
    return 256u * (t >> 3u) + 128u * (v >> 2u) + 32u * ((v >> 1u) & 1u) + 16u * (v & 1u);
}
fn high_column(t: u32) -> u32 { return low_column(t) + 64u; }

struct Part { q: vec4<u32>, high: vec4<u32>, scales: vec2<u32>, scale: u32 }

fn fetch_part(at: u32, t: u32) -> Part {
    let block = at / 16u + 14u * (t >> 3u);
    let v = t & 7u;
    let n = v >> 2u;
    let scales = weights[block + 12u];
    return Part(weights[block + v], weights[block + 8u + 2u * n + (v & 1u)], select(scales.xy, scales.zw, n == 1u), weights[block + 13u].x);
}

fn add(part: Part, t: u32, weight: f32) {
    let v = t & 7u;
    let shift = 24u - 8u * (v & 3u); // of the part's scale in its four, to the upper end
    let scale = weight * half(part.scale & 0xffffu);
    let scales = scale * vec2<f32>(vec2<i32>(part.scales << vec2<u32>(shift)) >> vec2<u32>(24u));
    let low = scales.x * TIMES;
    let high = scales.y * TIMES;
    let pairs = part.high >> vec4<u32>(v & 2u);
    let m = vec4<u32>(0x0f0f0f0fu);
    let l = (part.q & m) | ((pairs << vec4<u32>(4u)) & ~m);
    let h = ((part.q >> vec4<u32>(4u)) & m) | (pairs & ~m);
    a0 = fma(low, six_bits(l.x), a0);
    a1 = fma(low, six_bits(l.y), a1);
    a2 = fma(low, six_bits(l.z), a2);
    a3 = fma(low, six_bits(l.w), a3);
    b0 = fma(high, six_bits(h.x), b0);
    b1 = fma(high, six_bits(h.y), b1);
    b2 = fma(high, six_bits(h.z), b2);
    b3 = fma(high, six_bits(h.w), b3);
}
