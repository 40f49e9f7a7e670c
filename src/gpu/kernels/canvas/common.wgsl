// What the kernels of a canvas share: logits divided by the temperature, and what is known of a stretch of them.
const LOWEST = -3.0e38;
const STRETCH = 2048u; // values of one workgroup of judge_scan

fn temperature() -> f32 { return bitcast<f32>(rows[6u + 3u * MAX_ROWS]); }
fn draw_of(row: u32) -> f32 { return bitcast<f32>(rows[7u + 3u * MAX_ROWS + row]); }

// By bits: a compiler may believe that there are no other numbers.
fn is_finite(x: f32) -> bool { return (bitcast<u32>(x) & 0x7f800000u) != 0x7f800000u; }

fn cooled(at: u32) -> f32 {
    let z = arena[at] / temperature();
    return select(LOWEST, z, is_finite(z));
}

// e to the (z - peak); nothing for what is not finite.
fn share(z: f32, peak: f32) -> f32 { return select(exp(clamp(z - peak, -87.0, 0.0)), 0.0, z == LOWEST || z - peak < -87.0); }
