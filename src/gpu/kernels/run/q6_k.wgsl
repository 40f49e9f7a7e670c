// Q6_K: 14 vectors a block (padded when uploaded); 8 of low nibbles, 4 of high bit pairs, 16 int8 scales, scale.
// Value 128n + 32r + l: nibble r/2 of byte 64n + 32(r%2) + l, bits 2r of high byte 32n + l, minus 32.
const FIRST = 1u;

struct Run { scale: vec2<f32>, a: vec4<u32>, b: vec4<u32> }

fn fetch(at: u32, s: u32, p: u32) -> Run {
    let block = at / 16u + 14u * (s >> 2u);
    let n = (s >> 1u) & 1u;
    let shift = vec4<u32>(4u * (s & 1u)); // of r = 2 (s % 2) and the one behind it
    let high = weights[block + 8u + 2u * n + p] >> shift;
    let a = ((weights[block + 4u * n + p] >> shift) & vec4<u32>(0x0f0f0f0fu)) | ((high & vec4<u32>(0x03030303u)) << vec4<u32>(4u));
    let b = ((weights[block + 4u * n + 2u + p] >> shift) & vec4<u32>(0x0f0f0f0fu)) | ((high & vec4<u32>(0x0c0c0c0cu)) << vec4<u32>(2u));
    let scales = vec2<i32>(i32(weights[block + 12u][s & 3u])) << vec2<u32>(24u - 8u * p, 8u - 8u * p);
    return Run(half(weights[block + 13u].x & 0xffffu) * vec2<f32>(scales >> vec2<u32>(24u)), a, b);
}

fn turn(run: ptr<function, Run>, j: u32) {
    wa = (*run).scale.x * (vec4<f32>(unpack4xU8((*run).a.x)) - 32.0);
    wb = (*run).scale.y * (vec4<f32>(unpack4xU8((*run).b.x)) - 32.0);
    (*run).a = (*run).a.yzwx;
    (*run).b = (*run).b.yzwx;
}
