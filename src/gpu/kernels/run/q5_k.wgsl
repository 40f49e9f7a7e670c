// Q5_K, 11 vectors a block: one of scales, two of fifth bits (bit g of byte l: value l of group g), then nibbles as in Q4_K
const FIRST = 1u;

struct Run { scale: vec2<f32>, least: vec2<f32>, q: vec4<u32>, fifth: vec4<u32> }

fn fetch(at: u32, s: u32, p: u32) -> Run {
    let block = at / 16u + 11u * (s >> 2u);
    let i = s & 3u;
    let head = weights[block];
    let scales = k_scale_pair(head, 2u * i);
    return Run(half(head.x & 0xffffu) * scales.xy, half(head.x >> 16u) * scales.zw,
               weights[block + 3u + 2u * i + p], weights[block + 1u + p] >> vec4<u32>(2u * i));
}

fn turn(run: ptr<function, Run>, j: u32) {
    let w = (*run).q.x;
    let fifth = (*run).fifth.x;
    wa = (*run).scale.x * vec4<f32>(unpack4xU8((w & 0x0f0f0f0fu) | ((fifth & 0x01010101u) << 4u))) - (*run).least.x;
    wb = (*run).scale.y * vec4<f32>(unpack4xU8(((w >> 4u) & 0x0f0f0f0fu) | ((fifth & 0x02020202u) << 3u))) - (*run).least.y;
    (*run).q = (*run).q.yzwx;
    (*run).fifth = (*run).fifth.yzwx;
}
