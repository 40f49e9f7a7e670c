// Q4_K: 9 vectors a block; scales and minima in the first, then nibbles. The low nibbles of unit v belong to
// group 2(v/2), the high ones to the next.
const BLOCK = 9u;

fn low_at(v: u32) -> u32 { return 4u * (v >> 1u) + (v & 1u); }
fn high_at(v: u32) -> u32 { return low_at(v) + 2u; }

fn dot_unit(block: u32, v: u32) -> f32 {
    let head = weights[block];
    let q = weights[block + 1u + v];
    let s = k_scale_pair(head, v & 6u);
    let mask = vec4<u32>(0x0f0f0f0fu);
    let l = dot16(q & mask, xl) * fl.x;
    let h = dot16((q >> vec4<u32>(4u)) & mask, xh) * fh.x;
    return half(head.x & 0xffffu) * (s.x * l + s.y * h) - half(head.x >> 16u) * (s.z * fl.y + s.w * fh.y);
}
