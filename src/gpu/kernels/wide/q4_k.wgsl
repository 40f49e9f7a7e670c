// Q4_K for linear_wide: 9 vectors a block; scales and minima in the first, then nibbles. Unit v of a block
// is vector 1 + v: low nibbles 16 values of group 2(v/2), high nibbles of the next group.
const BLOCK = 9u;

fn offset_low(v: u32) -> u32 { return 64u * (v >> 1u) + 16u * (v & 1u); }
fn offset_high(v: u32) -> u32 { return offset_low(v) + 32u; }

fn dot32(block: u32, v: u32) -> f32 {
    let head = weights[block];
    let q = weights[block + 1u + v];
    let g = v & 6u; // the even group
    let s = k_scale_pair(head, g);
    let d = half(head.x & 0xffffu);
    let least = half(head.x >> 16u);
    let l = dot(nibbles(q.x, 0u), x0) + dot(nibbles(q.y, 0u), x1) + dot(nibbles(q.z, 0u), x2) + dot(nibbles(q.w, 0u), x3);
    let h = dot(nibbles(q.x, 4u), x4) + dot(nibbles(q.y, 4u), x5) + dot(nibbles(q.z, 4u), x6) + dot(nibbles(q.w, 4u), x7);
    return d * (s.x * l + s.y * h) - least * (s.z * sum_low + s.w * sum_high);
}
