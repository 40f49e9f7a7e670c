// Loading: rows as the file holds them -> rows as the kernels read them. A kernel's text is this file and
// repack/TYPE.wgsl. The host dispatches one thread per word of the slice's rows in the piece.
struct Slice {
    first_row: u32,  // where its rows go in the piece
    rows: u32,
    raw_bytes: u32,  // of a row in the file
    row_words: u32,  // of a row in the piece
    piece_rows: u32, // for layouts that keep parts of all rows together
    values: u32,     // of a row
    pad0: u32, pad1: u32,
}

@group(0) @binding(0) var<uniform> slice: Slice;
@group(0) @binding(1) var<storage, read> raw: array<u32>;
@group(0) @binding(2) var<storage, read_write> piece: array<u32>;

// Any byte offset; rows of the file begin anywhere.
fn raw_word(at: u32) -> u32 {
    let shift = (at & 3u) * 8u;
    let low = raw[at >> 2u];
    let high = raw[(at >> 2u) + 1u];
    return select((low >> shift) | (high << (32u - shift)), low, shift == 0u);
}
