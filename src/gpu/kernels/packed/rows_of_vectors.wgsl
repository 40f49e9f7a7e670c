// Blocks of 256 weights in BLOCK vectors: rows begin at a vector.
fn row_at(matrix: u32, n: u32) -> u32 { return matrix + n * (step.k / 256u * BLOCK); }
