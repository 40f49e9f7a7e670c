// Q4_K: 256 values in 144 bytes; f16 scale and scale of the minima, 12 bytes of 6-bit scales and
// minima, nibbles: groups 2i and 2i+1 are the low and high ones of the same 32 bytes
fn eight(at: u32, u: u32) {
    let b = at + 144u * (u >> 5u);
    let g = (u >> 2u) & 7u;
    let d = word_at(b);
    let s = k_scales(b + 4u, g) * vec2<f32>(half(d & 0xffffu), half(d >> 16u));
    let q = b + 16u + 32u * (g >> 1u) + 8u * (u & 3u);
    let shift = 4u * (g & 1u);
    wa = s.x * fields(word_at(q), shift, 15u) - s.y;
    wb = s.x * fields(word_at(q + 4u), shift, 15u) - s.y;
}
