// Where the row of a token lies in its table: of a table in the file, where the host has put it.
@group(0) @binding(4) var<storage, read> slots: array<u32>;
fn table_row(row: u32) -> u32 { return slots[row]; }
