// uses: params.attention common/pass
// Where the keys and values of a row's sequence lie. A cache has the rows of all sequences of the back end: a ring of
// params.ring rows for each, in which position p is in row p % ring; or, without a ring, the rows from sequence_base
// on. The binding holds rows first_row .. first_row + row_count of it.

// Row of the binding that holds position 0, modulo 2^32: the sequence may begin before the binding.
fn cache_of(row: u32) -> u32 {
    return select(sequence_base(row), sequence_of(row) * params.ring, params.ring > 0u) - params.first_row;
}

// Row of the binding that holds a position; cache: of cache_of.
fn cache_row(cache: u32, position: u32) -> u32 {
    return cache + select(position, position % max(params.ring, 1u), params.ring > 0u);
}

// Positions of the row's sequence that lie in this binding: from bound_begin up to, not including, bound_end.
fn bound_begin(row: u32) -> u32 {
    let base = sequence_base(row);
    return select(0u, params.first_row - base, params.ring == 0u && params.first_row > base);
}

fn bound_end(row: u32) -> u32 {
    if (params.ring > 0u) { return select(0u, 0xffffffffu, cache_of(row) < params.row_count); }
    let base = sequence_base(row);
    let end = params.first_row + params.row_count;
    return select(0u, end - base, end > base);
}
