// Q4_K for linear_wide: 9 vectors a block; scales and minima in the first, then nibbles. Unit v of a block
// is vector 1 + v: low nibbles 16 values of group 2(v/2), high nibbles of the next group.
const BLOCK = 9u;

fn offset_low(v: u32) -> u32 { return 64u * (v >> 1u) + 16u * (v & 1u); }
fn offset_high(v: u32) -> u32 { return offset_low(v) + 32u; }

fn dot32(block: u32, v: u32) -> f32 {
    let head = weights[block];
    let q = weights[block + 1u + v];
    let g = v & 6u; // the even group
    let shift = (g & 3u) * 8u;
    let a = head.y >> shift;
    let b = head.z >> shift;
    let c = head.w >> shift;
    let low = g < 4u;
    let s0 = select((c & 15u) | ((a >> 2u) & 48u), a & 63u, low);
    let m0 = select(((c >> 4u) & 15u) | ((b >> 2u) & 48u), b & 63u, low);
    let s1 = select(((c >> 8u) & 15u) | ((a >> 10u) & 48u), (a >> 8u) & 63u, low);
    let m1 = select(((c >> 12u) & 15u) | ((b >> 10u) & 48u), (b >> 8u) & 63u, low);
    let d = half(head.x & 0xffffu);
    let least = half(head.x >> 16u);
    let l = dot(nibbles(q.x, 0u), x0) + dot(nibbles(q.y, 0u), x1) + dot(nibbles(q.z, 0u), x2) + dot(nibbles(q.w, 0u), x3);
    let h = dot(nibbles(q.x, 4u), x4) + dot(nibbles(q.y, 4u), x5) + dot(nibbles(q.z, 4u), x6) + dot(nibbles(q.w, 4u), x7);
    return d * (f32(s0) * l + f32(s1) * h) - least * (f32(m0) * sum_low + f32(m1) * sum_high);
}
