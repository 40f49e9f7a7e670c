// uses: common/pass_layout
// The token that a row embeds: the host's, the one chosen in the pass before, or a draft (enum bz_feed in `rows`, the
// parameter block).
fn token_of(row: u32) -> u32 {
    if (rows[3] == 1u) { return rows[CHOSEN]; }
    if (rows[3] == 2u && row > 0u) { return rows[DRAFTS + row - 1u]; }
    return rows[4u + 3u * row] & 0x3fffffffu;
}
