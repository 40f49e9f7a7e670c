// Stores the head that a workgroup of THREADS threads holds in `key` and `value`, the values times a factor, as f32 or as
// pairs of f16 in a word.
override F16: bool = true;

fn store_head(local: u32, place: u32, d: u32, factor: f32) {
    let words = select(d, d / 2u, F16);
    let offset = place * words;
    for (var i = local; i < words; i += THREADS) {
        if (F16) {
            keys[offset + i] = pack2x16float(vec2<f32>(key[2u * i], key[2u * i + 1u]));
            values[offset + i] = pack2x16float(vec2<f32>(value[2u * i], value[2u * i + 1u]) * factor);
        } else {
            keys[offset + i] = bitcast<u32>(key[i]);
            values[offset + i] = bitcast<u32>(value[i] * factor);
        }
    }
}
