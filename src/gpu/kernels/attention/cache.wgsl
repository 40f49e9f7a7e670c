// uses: params.attention
// Cache row of a position: in a ring, or in the bound range of the cache.
fn cache_row(position: u32) -> u32 {
    return select(position - params.first_row, position % max(params.ring, 1u), params.ring > 0u);
}
