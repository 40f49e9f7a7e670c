// Q6_K: 14 vectors a block (padded when uploaded); 8 of low nibbles, 4 of high bit pairs, scales, scale. The low
// nibbles of unit v of a block's eight belong to values 64 before those of its high nibbles.
const BLOCK = 14u;

fn low_at(u: u32) -> u32 { return 8u * (u >> 2u) + (u & 3u); }
fn high_at(u: u32) -> u32 { return low_at(u) + 4u; }

// Six bits less 32, four to a word, without borrows between bytes.
fn centred(q: vec4<u32>) -> vec4<u32> {
    return ((q | vec4<u32>(0x80808080u)) - vec4<u32>(0x20202020u)) ^ vec4<u32>(0x80808080u);
}

fn dot_unit(row: u32, u: u32) -> f32 {
    let block = row + (u >> 3u) * BLOCK;
    let v = u & 7u;
    let q = weights[block + v];
    let pairs = weights[block + 8u + 2u * (v >> 2u) + (v & 1u)] >> vec4<u32>(v & 2u);
    let s = weights[block + 12u];
    let d = half(weights[block + 13u].x & 0xffffu);
    let i = 8u * (v >> 2u) + (v & 3u); // scale of the low nibbles; the high ones' is 4 further
    let mask = vec4<u32>(0x0f0f0f0fu);
    let top = vec4<u32>(0x30303030u);
    let l = dot16(centred((q & mask) | ((pairs << vec4<u32>(4u)) & top)), xl) * fl.x;
    let h = dot16(centred(((q >> vec4<u32>(4u)) & mask) | (pairs & top)), xh) * fh.x;
    return d * (scale_byte(s, i) * l + scale_byte(s, i + 4u) * h);
}
