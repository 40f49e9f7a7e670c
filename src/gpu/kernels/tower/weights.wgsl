// Small weights of encoders, as scalars in the type of the file.
override KIND: u32 = 0u; // 0: F32, 1: F16, 2: BF16
@group(0) @binding(3) var<storage, read> weights: array<u32>;

fn weight_at(i: u32) -> f32 {
    if (KIND == 0u) { return bitcast<f32>(weights[i]); }
    let word = weights[i >> 1u];
    if (KIND == 2u) { return bitcast<f32>(select(word << 16u, word & 0xffff0000u, (i & 1u) == 1u)); }
    let two = unpack2x16float(word);
    return select(two.x, two.y, (i & 1u) == 1u);
}
