// Blocks of 32 weights: rows begin at a byte, and a unit is a block.
fn row_at(matrix: u32, n: u32) -> u32 { return matrix * 16u + n * step.row_bytes; }
fn low_at(u: u32) -> u32 { return 2u * u; }
fn high_at(u: u32) -> u32 { return 2u * u + 1u; }
