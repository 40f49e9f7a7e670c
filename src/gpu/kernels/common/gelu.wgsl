// gelu(x) = x / 2 * (1 + tanh(u)) = x / (1 + exp(-2u)), u = sqrt(2 / pi) (x + 0.044715 x^3). The second form keeps its
// digits where tanh is near -1.
fn gelu(x: f32) -> f32 {
    let u = clamp(0.7978845608028654 * x * (1.0 + 0.044715 * x * x), -40.0, 40.0);
    let e = exp(-2.0 * abs(u));
    return x * select(e, 1.0, u >= 0.0) / (1.0 + e);
}
