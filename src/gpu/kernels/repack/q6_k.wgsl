// Q6_K: blocks of 210 bytes become 56 words: 52 as they are, the f16 scale, and padding. One thread per word.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) thread: vec3<u32>) {
    if (thread.x >= slice.rows * slice.row_words) { return; }
    let row = thread.x / slice.row_words;
    let i = thread.x % slice.row_words;
    let block = row * slice.raw_bytes + 210u * (i / 56u);
    let k = i % 56u;
    let word = raw_word(block + 4u * min(k, 52u));
    piece[(slice.first_row + row) * slice.row_words + i] = select(select(0u, word & 0xffffu, k == 52u), word, k < 52u);
}
