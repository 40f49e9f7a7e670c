// uses: <eight>
// Weights for soft_embed: values 16u .. 16u + 15 of the row that begins at byte `at`, from unpack8().
fn sixteen(at: u32, u: u32) {
    unpack8(at, 2u * u);
    w0 = wa;
    w1 = wb;
    unpack8(at, 2u * u + 1u);
    w2 = wa;
    w3 = wb;
}
