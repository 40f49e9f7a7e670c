// uses: common/arena
// Row of the table for a token that best chose, at in0.
fn table_row(row: u32) -> u32 { return u32(arena[params.in0 + row * params.in0_stride]); }
