// Q4_0: 18 bytes per 32 values; f16 scale, nibbles, offset 8
const FIRST = 2u;

struct Run { scale: f32, q: vec4<u32> }

fn fetch(at: u32, s: u32, p: u32) -> Run {
    let b = at + 18u * (2u * s + p);
    let i = b / 4u;
    let odd = (b & 2u) != 0u;
    let w = weights[i];
    let q = vec4<u32>(weights[i + 1u], weights[i + 2u], weights[i + 3u], weights[i + 4u]);
    let joined = (vec4<u32>(w, q.xyz) >> vec4<u32>(16u)) | (q << vec4<u32>(16u));
    return Run(half(select(w, w >> 16u, odd) & 0xffffu), select(joined, q, odd));
}

fn turn(run: ptr<function, Run>, j: u32) {
    let w = (*run).q.x;
    wa = (*run).scale * (low_nibbles(w) - 8.0);
    wb = (*run).scale * (high_nibbles(w) - 8.0);
    (*run).q = (*run).q.yzwx;
}
