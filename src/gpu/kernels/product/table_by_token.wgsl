// uses: common/pass
// Row of the table for a token: the token's id, where the whole table is on the GPU.
fn table_row(row: u32) -> u32 { return token_of(row); }
