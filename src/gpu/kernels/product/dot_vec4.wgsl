// uses: params.fused_product product/dot
// Blocks of 256 weights in BLOCK vectors: a row begins at a vector.
fn row_at(matrix: u32, n: u32) -> u32 { return matrix + n * (K / 256u * BLOCK); }
