// Q4_K, 9 vectors of 16 bytes a block: one holds the scales, another the sixteen values and those 32 behind them. Experts
// share a matrix among few rows, so that reading it counts.
var<private> wc: vec4<f32>;
var<private> wd: vec4<f32>;

fn fields(w: u32, shift: u32) -> vec4<f32> {
    return vec4<f32>((vec4<u32>(w, w >> 8u, w >> 16u, w >> 24u) >> vec4<u32>(shift)) & vec4<u32>(15u));
}

fn sixteen(at: u32, v: u32) {
    let block = at / 16u + 9u * (v >> 4u);
    let g = (v >> 1u) & 7u; // of 32 values
    let head = weights[block];
    let q = weights[block + 1u + 2u * (g >> 1u) + (v & 1u)];
    let scales = head.yzw >> vec3<u32>((g & 3u) * 8u);
    let s = select((scales.z & 15u) | ((scales.x >> 2u) & 48u), scales.x & 63u, g < 4u);
    let m = select(((scales.z >> 4u) & 15u) | ((scales.y >> 2u) & 48u), scales.y & 63u, g < 4u);
    let scale = half(head.x & 0xffffu) * f32(s);
    let least = half(head.x >> 16u) * f32(m);
    let shift = 4u * (g & 1u);
    wa = scale * fields(q.x, shift) - least;
    wb = scale * fields(q.y, shift) - least;
    wc = scale * fields(q.z, shift) - least;
    wd = scale * fields(q.w, shift) - least;
}
