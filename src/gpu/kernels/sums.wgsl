// A value that is there, or the sum of what n splits of a product left of it, each `between` values behind the one before:
// what split_sum.wgsl would have written.
fn added(at: u32, between: u32, n: u32) -> f32 {
    if (n == 0u) { return arena[at]; }
    var sum = 0.0;
    for (var i = 0u; i < n; i++) { sum += arena[at + i * between]; }
    return sum;
}
