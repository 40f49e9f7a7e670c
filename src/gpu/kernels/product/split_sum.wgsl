// uses: common/pass common/arena
// split_sum: y = sum of the partial sums that the splits of a tile kernel left at out1, [split][row][cols], in order of
// the splits. One thread per value.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) thread: vec3<u32>) {
    let c = thread.x;
    let row = thread.y;
    if (row >= live_rows() || c >= step.cols) { return; }
    var sum = 0.0;
    for (var i = 0u; i < step.heads; i++) { sum += arena[step.out1 + i * step.out1_stride + row * step.cols + c]; }
    arena[step.out0 + row * step.out0_stride + c] = sum;
}
