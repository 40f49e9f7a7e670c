// uses: params.canvas common/pass common/arena
// Shared by the kernels of a canvas: logits divided by the temperature, in ranges of RANGE values.
const LOWEST = -3.0e38;
const RANGE = 2048u; // values per workgroup of logit_stats_scan

fn temperature() -> f32 { return bitcast<f32>(rows[6u + 3u * MAX_ROWS]); }
fn draw_of(row: u32) -> f32 { return bitcast<f32>(rows[7u + 3u * MAX_ROWS + row]); }

// By bits: a compiler may assume that all values are finite.
fn is_finite(x: f32) -> bool { return (bitcast<u32>(x) & 0x7f800000u) != 0x7f800000u; }

fn scaled_logit(at: u32) -> f32 {
    let z = arena[at] / temperature();
    return select(LOWEST, z, is_finite(z));
}

// exp(z - peak); 0 for values that are not finite.
fn exp_below(z: f32, peak: f32) -> f32 { return select(exp(clamp(z - peak, -87.0, 0.0)), 0.0, z == LOWEST || z - peak < -87.0); }
