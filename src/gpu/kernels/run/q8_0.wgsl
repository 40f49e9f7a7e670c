// Q8_0: 34 bytes per 32 values; f16 scale, int8 each. Of two blocks the second one's values are aligned.
const FIRST = 1u;

struct Run { scale: vec2<f32>, a: vec4<u32>, b: vec4<u32> }

fn fetch(at: u32, s: u32, p: u32) -> Run {
    let i = (at + 68u * s) / 4u;
    let x = i + 4u * p;
    let a = vec4<u32>(weights[x], weights[x + 1u], weights[x + 2u], weights[x + 3u]);
    let b = vec4<u32>(weights[x + 9u], weights[x + 10u], weights[x + 11u], weights[x + 12u]);
    let joined = (a >> vec4<u32>(16u)) | (vec4<u32>(a.yzw, weights[x + 4u]) << vec4<u32>(16u));
    return Run(vec2<f32>(half(weights[i] & 0xffffu), half(weights[i + 8u] >> 16u)), joined, b);
}

fn turn(run: ptr<function, Run>, j: u32) {
    wa = (*run).scale.x * vec4<f32>(unpack4xI8((*run).a.x));
    wb = (*run).scale.y * vec4<f32>(unpack4xI8((*run).b.x));
    (*run).a = (*run).a.yzwx;
    (*run).b = (*run).b.yzwx;
}
