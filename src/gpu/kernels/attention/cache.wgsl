// uses: common/step
// Cache row of a position: in a ring, or in the bound range of the cache.
fn cache_row(position: u32) -> u32 {
    return select(position - step.first_row, position % max(step.ring, 1u), step.ring > 0u);
}
