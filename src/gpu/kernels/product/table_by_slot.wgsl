// Row of the table for a token: the slot where the host has put it, where the table stays in the file.
@group(0) @binding(4) var<storage, read> slots: array<u32>;
fn table_row(row: u32) -> u32 { return slots[row]; }
