// uses: params.fused_product product/dot
// Blocks of 32 weights: a row begins at a byte, and a unit is a block.
fn row_at(matrix: u32, n: u32) -> u32 { return matrix * 16u + n * params.row_bytes; }
fn low_index(u: u32) -> u32 { return 2u * u; }
fn high_index(u: u32) -> u32 { return 2u * u + 1u; }
