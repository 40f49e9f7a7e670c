// uses: common/arena
// A value of the arena, or the sum of the n partial sums that a split-K product left, `between` values apart: what
// product/split_sum would have written. n = 0: the value itself.
fn sum_splits(at: u32, between: u32, n: u32) -> f32 {
    if (n == 0u) { return arena[at]; }
    var sum = 0.0;
    for (var i = 0u; i < n; i++) { sum += arena[at + i * between]; }
    return sum;
}
