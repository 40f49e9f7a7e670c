// uses: params.product common/arena types/eight
// Tiles (product/tile) of any shape; values past the end of a row count as 0.
fn input4(at: u32, k: u32) -> vec4<f32> {
    var x = vec4<f32>();
    for (var j = 0u; j < 4u; j++) {
        if (k + j < params.k) { x[j] = arena[at + k + j]; }
    }
    return x;
}

fn masked(k: u32, w: vec4<f32>) -> vec4<f32> { return select(vec4<f32>(), w, vec4<u32>(k) + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(params.k)); }

// Zeroes those of wa, wb past the end of the row; wa begins at value k.
fn mask8(k: u32) {
    wa = masked(k, wa);
    wb = masked(k + 4u, wb);
}

// The same where wb begins at value `other`.
fn mask_pair(k: u32, other: u32) {
    wa = masked(k, wa);
    wb = masked(other, wb);
}

fn store4(t: Tile, y: u32, output: u32, v: vec4<f32>) {
    for (var c = 0u; c < 4u; c++) {
        if (output + c >= t.low && output + c < t.high) { arena[y + output + c] = v[c]; }
    }
}
