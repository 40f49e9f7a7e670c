// Q5_K: 11 vectors a block; scales and minima, two of fifth bits (bit g of byte l: value l of group g), nibbles as
// in Q4_K.
const BLOCK = 11u;

fn low_at(u: u32) -> u32 { return 4u * (u >> 1u) + (u & 1u); }
fn high_at(u: u32) -> u32 { return low_at(u) + 2u; }

fn dot_unit(row: u32, u: u32) -> f32 {
    let block = row + (u >> 3u) * BLOCK;
    let v = u & 7u;
    let head = weights[block];
    let fifth = weights[block + 1u + (v & 1u)] >> vec4<u32>(v & 6u);
    let q = weights[block + 3u + v];
    let s = k_scale_pair(head, v & 6u);
    let mask = vec4<u32>(0x0f0f0f0fu);
    let bit = vec4<u32>(0x10101010u);
    let l = dot16((q & mask) | ((fifth << vec4<u32>(4u)) & bit), xl) * fl.x;
    let h = dot16(((q >> vec4<u32>(4u)) & mask) | ((fifth << vec4<u32>(3u)) & bit), xh) * fh.x;
    return half(head.x & 0xffffu) * (s.x * l + s.y * h) - half(head.x >> 16u) * (s.z * fl.y + s.w * fh.y);
}
