// uses: params.repack type.repack
// Loading: rows of weights as in the file -> rows as the kernels read them, for types whose GPU layout differs.
// type.repack has the entry point. One thread per 32-bit word of the output.
@group(0) @binding(1) var<storage, read> raw: array<u32>;
@group(0) @binding(2) var<storage, read_write> piece: array<u32>;

// At any byte offset: rows of the file begin anywhere.
fn raw_word(at: u32) -> u32 {
    let shift = (at & 3u) * 8u;
    let low = raw[at >> 2u];
    let high = raw[(at >> 2u) + 1u];
    return select((low >> shift) | (high << (32u - shift)), low, shift == 0u);
}
