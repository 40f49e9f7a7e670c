// A cache in blocks (lower/lower.h) for heads of any size: value by value.
override BITS: u32 = 8u; // or 4, rotated
fn is_rotated() -> bool { return BITS == 4u; }

fn units(d: u32) -> u32 { return d; }
fn quant_words(d: u32) -> u32 { return (d + 7u) / 8u * BITS / 4u; }

fn head_words(d: u32) -> u32 {
    let blocks = (d + 31u) / 32u;
    return quant_words(d) + select((blocks + 1u) / 2u, (blocks + 3u) / 4u * 2u, BITS == 8u);
}

// Value i, given the word of its integer and the word of its scale.
fn value_of(word: u32, scales: u32, i: u32) -> f32 {
    let two = unpack2x16float(scales);
    let scale = select(two.x, two.y, (i & 32u) != 0u);
    if (BITS == 8u) { return scale * f32(bitcast<i32>(word << (24u - 8u * (i & 3u))) >> 24u); }
    return scale * (f32((word >> (8u * (i & 3u) + (i & 4u))) & 15u) - 8.0);
}

fn key_part(head: u32, i: u32, d: u32) -> f32 {
    return query[i] * value_of(keys[head + i * BITS / 32u], keys[head + quant_words(d) + i / 64u], i);
}

fn value_at(head: u32, i: u32, d: u32) -> f32 {
    return value_of(values[head + i * BITS / 32u], values[head + quant_words(d) + i / 64u], i);
}
