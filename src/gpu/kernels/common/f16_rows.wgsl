// Rows of f16 for product/linear_tile16. A power of two brings a row's largest value to 2^14 .. 2^15, so that none
// overflows.

// The bits of the factor that undoes it; `largest` are the bits of the row's largest magnitude. NaN if there is a NaN or
// an infinity, so that all results of the row are.
fn undo_bits(largest: u32) -> u32 {
    let exponent = largest >> 23u; // has a bias of 127
    return select((max(exponent, 15u) - 14u) << 23u, 0x7fc00000u, exponent == 255u);
}

// The power of two itself.
fn scale_of(undo: u32) -> f32 { return bitcast<f32>((254u << 23u) - undo); }

// Where four values of a row lie, in pairs of words after the first: matrices of 16 rows by 16 values,
// [row / 16][k / 16][16][16].
fn tile16_at(row: u32, four: u32, k: u32) -> u32 { return (row / 16u * (k / 16u) + four / 4u) * 64u + row % 16u * 4u + four % 4u; }
