// Q5_0: 22 bytes per 32 values; f16 scale, 32 fifth bits, nibbles, offset 16
const FIRST = 2u;

struct Run { scale: f32, fifth: u32, q: vec4<u32> }

fn fetch(at: u32, s: u32, p: u32) -> Run {
    let b = at + 22u * (2u * s + p);
    let i = b / 4u;
    let odd = (b & 2u) != 0u;
    let w0 = weights[i];
    let w1 = weights[i + 1u];
    let q = vec4<u32>(weights[i + 2u], weights[i + 3u], weights[i + 4u], weights[i + 5u]);
    let joined = (vec4<u32>(w1, q.xyz) >> vec4<u32>(16u)) | (q << vec4<u32>(16u));
    return Run(half(select(w0, w0 >> 16u, odd) & 0xffffu), select((w0 >> 16u) | (w1 << 16u), w1, odd), select(joined, q, odd));
}

// Four bits, as bit 4 of four bytes.
fn spread(bits: u32) -> u32 { return ((bits & 15u) * 0x02040810u) & 0x10101010u; }

fn turn(run: ptr<function, Run>, j: u32) {
    let w = (*run).q.x;
    wa = (*run).scale * (vec4<f32>(unpack4xU8((w & 0x0f0f0f0fu) | spread((*run).fifth))) - 16.0);
    wb = (*run).scale * (vec4<f32>(unpack4xU8(((w >> 4u) & 0x0f0f0f0fu) | spread((*run).fifth >> 16u))) - 16.0);
    (*run).q = (*run).q.yzwx;
    (*run).fifth >>= 4u;
}
