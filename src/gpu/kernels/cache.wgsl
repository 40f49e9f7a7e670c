// Where a position's keys and values lie in the cache, or in the piece of it that is bound.
fn cache_row(position: u32) -> u32 {
    return select(position - step.first_row, position % max(step.ring, 1u), step.ring > 0u);
}
