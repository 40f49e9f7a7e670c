// Q4_K: 9 vectors a block; scales and minima in the first, then nibbles. The low nibbles of unit v of a block's
// eight belong to group 2(v/2), the high ones to the next.
const BLOCK = 9u;

fn low_at(u: u32) -> u32 { return 4u * (u >> 1u) + (u & 1u); }
fn high_at(u: u32) -> u32 { return low_at(u) + 2u; }

fn dot_unit(row: u32, u: u32) -> f32 {
    let block = row + (u >> 3u) * BLOCK;
    let v = u & 7u;
    let head = weights[block];
    let q = weights[block + 1u + v];
    let s = k_scale_pair(head, v & 6u);
    let mask = vec4<u32>(0x0f0f0f0fu);
    let l = dot16(q & mask, xl) * fl.x;
    let h = dot16((q >> vec4<u32>(4u)) & mask, xh) * fh.x;
    return half(head.x & 0xffffu) * (s.x * l + s.y * h) - half(head.x >> 16u) * (s.z * fl.y + s.w * fh.y);
}
