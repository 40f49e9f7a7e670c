// Where the row of a token lies in its table: tables on the GPU are looked up by the token.
fn table_row(row: u32) -> u32 { return token_of(row); }
