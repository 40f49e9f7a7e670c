// uses: params.attention common/pass
// Positions that a row sees: from first_visible to last_visible, both included. Causal, within the window, extended by
// the image that the row belongs to; for a canvas, all rows of the pass; for vectors of texts (image_attention 3), the
// row's text, within the window on both sides.
fn first_visible(row: u32) -> u32 {
    let position = position_of(select(row, 0u, params.bidirectional == 1u));
    let first = select(0u, position + 1u - params.window, params.window > 0u && position + 1u > params.window);
    if (params.image_attention == 3u) { return max(first, rows[7u + 4u * MAX_ROWS + 2u * row]); }
    if (params.image_attention == 2u && is_of_image(row)) { return min(first, rows[7u + 4u * MAX_ROWS + 2u * row]); }
    return first;
}

fn last_visible(row: u32) -> u32 {
    if (params.image_attention == 3u) {
        let end = rows[8u + 4u * MAX_ROWS + 2u * row];
        return select(end, min(end, position_of(row) + params.window - 1u), params.window > 0u);
    }
    if (params.image_attention > 0u && is_of_image(row)) { return rows[8u + 4u * MAX_ROWS + 2u * row]; }
    return position_of(select(row, live_rows() - 1u, params.bidirectional == 1u));
}
