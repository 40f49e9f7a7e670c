// tanh to f32 precision. A driver's tanh may be exact to 2^-11 only, or lose all digits near zero, where audio scores
// are.
fn exact_tanh(x: f32) -> f32 {
    let a = min(abs(x), 15.0); // beyond that it rounds to 1
    let q = x * x;
    let small = x * (1.0 + q * (-0.33333333 + q * (0.13333333 + q * (-0.05396825 + q * 0.02186949))));
    let e = exp(-2.0 * a);
    return select(sign(x) * (1.0 - e) / (1.0 + e), small, a < 0.25);
}
