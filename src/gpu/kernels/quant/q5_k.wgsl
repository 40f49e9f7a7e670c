// Q5_K: 256 values in 176 bytes; as Q4_K with 32 bytes of fifth bits before the nibbles
fn eight(at: u32, u: u32) {
    let b = at + 176u * (u >> 5u);
    let g = (u >> 2u) & 7u;
    let d = word_at(b);
    let s = k_scales(b + 4u, g) * vec2<f32>(half(d & 0xffffu), half(d >> 16u));
    let l = 8u * (u & 3u);
    let q = b + 48u + 32u * (g >> 1u) + l;
    let shift = 4u * (g & 1u);
    wa = s.x * (fields(word_at(q), shift, 15u) + 16.0 * fields(word_at(b + 16u + l), g, 1u)) - s.y;
    wb = s.x * (fields(word_at(q + 4u), shift, 15u) + 16.0 * fields(word_at(b + 20u + l), g, 1u)) - s.y;
}
