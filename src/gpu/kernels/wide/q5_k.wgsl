// Q5_K for linear_wide: 11 vectors a block; scales and minima, two vectors of fifth bits, nibbles.
const BLOCK = 11u;

fn offset_low(v: u32) -> u32 { return 64u * (v >> 1u) + 16u * (v & 1u); }
fn offset_high(v: u32) -> u32 { return offset_low(v) + 32u; }

fn five(q: u32, shift: u32, fifth: u32, bit: u32) -> vec4<f32> {
    return nibbles(q, shift) + 16.0 * vec4<f32>((vec4<u32>(fifth, fifth >> 8u, fifth >> 16u, fifth >> 24u) >> vec4<u32>(bit)) & vec4<u32>(1u));
}

fn dot32(block: u32, v: u32) -> f32 {
    let head = weights[block];
    let f = weights[block + 1u + (v & 1u)];
    let q = weights[block + 3u + v];
    let g = v & 6u;
    let s = k_scale_pair(head, g);
    let d = half(head.x & 0xffffu);
    let least = half(head.x >> 16u);
    let l = dot(five(q.x, 0u, f.x, g), x0) + dot(five(q.y, 0u, f.y, g), x1) + dot(five(q.z, 0u, f.z, g), x2) +
            dot(five(q.w, 0u, f.w, g), x3);
    let h = dot(five(q.x, 4u, f.x, g + 1u), x4) + dot(five(q.y, 4u, f.y, g + 1u), x5) +
            dot(five(q.z, 4u, f.z, g + 1u), x6) + dot(five(q.w, 4u, f.w, g + 1u), x7);
    return d * (s.x * l + s.y * h) - least * (s.z * sum_low + s.w * sum_high);
}
