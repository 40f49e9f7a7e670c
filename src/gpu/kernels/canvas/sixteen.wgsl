// Weights for soft_embed: values 16u .. 16u + 15 of the row that begins at byte `at`, from any type's eight().
fn sixteen(at: u32, u: u32) {
    eight(at, 2u * u);
    w0 = wa;
    w1 = wb;
    eight(at, 2u * u + 1u);
    w2 = wa;
    w3 = wb;
}
