// Q6_K: 256 values in 210 bytes, padded to 224 when uploaded so that everything is aligned; 128 bytes of
// low nibbles, 64 of high bit pairs, 16 int8 scales, f16 scale.
// Value 128n + 32r + l: nibble r/2 of byte 64n + 32(r%2) + l, bits 2r of high byte 32n + l, minus 32.
fn eight(at: u32, u: u32) {
    let b = at + 224u * (u >> 5u);
    let n = (u >> 4u) & 1u;
    let r = (u >> 2u) & 3u;
    let scale = half_at(b + 208u) * signed8(u8_at(b + 192u + ((u & 31u) >> 1u)));
    let l = 8u * (u & 3u);
    let low = b + 64u * n + 32u * (r & 1u) + l;
    let high = b + 128u + 32u * n + l;
    let shift = 4u * (r >> 1u);
    wa = scale * (fields(word_at(low), shift, 15u) + 16.0 * fields(word_at(high), 2u * r, 3u) - 32.0);
    wb = scale * (fields(word_at(low + 4u), shift, 15u) + 16.0 * fields(word_at(high + 4u), 2u * r, 3u) - 32.0);
}
