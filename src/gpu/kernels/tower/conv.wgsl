// conv: 3 x 3 over time and pitch, every second place. One thread per value; a row holds `experts` moments of `width`
// pitches of `heads` channels, and half as many of either come out, of `k` channels. Behind weights.wgsl.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) thread: vec3<u32>) {
    let c = thread.x;
    let row = thread.y;
    if (row >= live_rows() || c >= step.cols) { return; }
    let channels = step.heads;
    let o = c % step.k;
    let place = i32(c / step.k % (step.width / 2u));
    let time = i32(row * (step.experts / 2u) + c / step.k / (step.width / 2u));
    let every = 4u / step.experts;
    let valid = i32((rows[3u + 1u] + every - 1u) / every); // moments of the sound as this step sees them
    var y = 0.0;
    if (time < (valid + 1) / 2) {
        for (var tap = 0; tap < 9; tap++) {
            let at = 2 * time + tap / 3 - 1;
            let pitch = 2 * place + tap % 3 - 1;
            if (at < 0 || at >= valid || pitch < 0 || pitch >= i32(step.width)) { continue; }
            let source = step.in0 + u32(at) / step.experts * step.in0_stride + (u32(at) % step.experts * step.width + u32(pitch)) * channels;
            for (var i = 0u; i < channels; i++) {
                y += weight_at((o * channels + i) * 9u + u32(tap)) * arena[source + i];
            }
        }
    }
    arena[step.out0 + row * step.out0_stride + c] = y;
}
