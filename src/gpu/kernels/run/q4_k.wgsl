// Q4_K, 9 vectors a block: one of scales, then nibbles, of which a vector holds sixteen values of a group of 32 and the same
// of the next.
const FIRST = 1u;

struct Run { scale: vec2<f32>, least: vec2<f32>, q: vec4<u32> }

fn fetch(at: u32, s: u32, p: u32) -> Run {
    let block = at / 16u + 9u * (s >> 2u);
    let i = s & 3u;
    let head = weights[block];
    let scales = k_scale_pair(head, 2u * i);
    return Run(half(head.x & 0xffffu) * scales.xy, half(head.x >> 16u) * scales.zw,
               weights[block + 1u + 2u * i + p]);
}

fn turn(run: ptr<function, Run>, j: u32) {
    let w = (*run).q.x;
    wa = (*run).scale.x * low_nibbles(w) - (*run).least.x;
    wb = (*run).scale.y * high_nibbles(w) - (*run).least.y;
    (*run).q = (*run).q.yzwx;
}
