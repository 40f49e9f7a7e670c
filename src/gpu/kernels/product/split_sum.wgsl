// uses: params.product common/pass common/arena
// split_sum: y = sum of the partial sums that the splits of a tile kernel left at out1, [split][row][cols], in order of
// the splits. One thread per value.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) thread: vec3<u32>) {
    let c = thread.x;
    let row = thread.y;
    if (row >= live_rows() || c >= params.cols) { return; }
    var sum = 0.0;
    for (var i = 0u; i < params.splits; i++) { sum += arena[params.out1 + i * params.out1_stride + row * params.cols + c]; }
    arena[params.out0 + row * params.out0_stride + c] = sum;
}
