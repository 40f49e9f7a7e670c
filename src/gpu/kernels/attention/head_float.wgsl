// A cache in f16 or f32 for heads of any size: keys are scored a word at a time.
override F16: bool = true;
fn is_rotated() -> bool { return false; }

fn units(d: u32) -> u32 { return select(d, d / 2u, F16); }
fn head_words(d: u32) -> u32 { return units(d); }

// What word i of a key adds to its score.
fn key_part(head: u32, i: u32, d: u32) -> f32 {
    let word = keys[head + i];
    if (F16) {
        let k = unpack2x16float(word);
        return query[2u * i] * k.x + query[2u * i + 1u] * k.y;
    }
    return query[i] * bitcast<f32>(word);
}

fn value_at(head: u32, i: u32, d: u32) -> f32 {
    if (F16) {
        let two = unpack2x16float(values[head + i / 2u]);
        return select(two.x, two.y, (i & 1u) == 1u);
    }
    return bitcast<f32>(values[head + i]);
}
