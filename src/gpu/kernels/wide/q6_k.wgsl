// Q6_K for linear_wide: 14 vectors a block (padded when uploaded); 8 of low nibbles, 4 of high bit pairs,
// scales, scale. Unit v is vector v: its low nibbles belong to values 64 before those of its high nibbles.
const BLOCK = 14u;

fn offset_low(v: u32) -> u32 { return 128u * (v >> 2u) + 32u * ((v >> 1u) & 1u) + 16u * (v & 1u); }
fn offset_high(v: u32) -> u32 { return offset_low(v) + 64u; }

fn six(q: u32, shift: u32, high: u32, at: u32) -> vec4<f32> {
    let pair = (vec4<u32>(high, high >> 8u, high >> 16u, high >> 24u) >> vec4<u32>(at)) & vec4<u32>(3u);
    return nibbles(q, shift) + 16.0 * vec4<f32>(pair) - 32.0;
}

fn dot32(block: u32, v: u32) -> f32 {
    let q = weights[block + v];
    let h = weights[block + 8u + 2u * (v >> 2u) + (v & 1u)];
    let s = weights[block + 12u];
    let d = half(weights[block + 13u].x & 0xffffu);
    let r = (v >> 1u) & 1u;
    let i = 8u * (v >> 2u) + 2u * r + (v & 1u); // scale of the low nibbles; the high ones' is 4 further
    let l = dot(six(q.x, 0u, h.x, 2u * r), x0) + dot(six(q.y, 0u, h.y, 2u * r), x1) +
            dot(six(q.z, 0u, h.z, 2u * r), x2) + dot(six(q.w, 0u, h.w, 2u * r), x3);
    let t = 2u * r + 4u;
    let u = dot(six(q.x, 4u, h.x, t), x4) + dot(six(q.y, 4u, h.y, t), x5) + dot(six(q.z, 4u, h.z, t), x6) +
            dot(six(q.w, 4u, h.w, t), x7);
    return d * (scale_byte(s, i) * l + scale_byte(s, i + 4u) * u);
}
