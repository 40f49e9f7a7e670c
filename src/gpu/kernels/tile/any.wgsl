// Tiles of any shape; what lies behind a row counts as nothing.
fn input4(at: u32, k: u32) -> vec4<f32> {
    var x = vec4<f32>();
    for (var j = 0u; j < 4u; j++) {
        if (k + j < step.k) { x[j] = arena[at + k + j]; }
    }
    return x;
}

fn kept(k: u32, w: vec4<f32>) -> vec4<f32> { return select(vec4<f32>(), w, vec4<u32>(k) + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(step.k)); }

// Of the weights at hand, from value k on.
fn keep8(k: u32) {
    wa = kept(k, wa);
    wb = kept(k + 4u, wb);
}

// The same of two fours that are apart.
fn keep_two(k: u32, other: u32) {
    wa = kept(k, wa);
    wb = kept(other, wb);
}

fn put4(t: Tile, y: u32, output: u32, v: vec4<f32>) {
    for (var c = 0u; c < 4u; c++) {
        if (output + c >= t.low && output + c < t.high) { arena[y + output + c] = v[c]; }
    }
}
