// uses: params.low_rank common/pass common/arena
// add_low_rank: y = x + scale * B a, the second half of what an adapter adds to a product.
// in0: x [rows][slots][cols]; in1: a [rows][slots][rank]; in2: chosen experts [rows][slots].
// weights: B in panels [experts][panels][rank][16], 16 outputs side by side. One thread per output.
override SLOTS: u32 = 1u;
override EXPERTS: u32 = 0u; // 1: every slot has the matrix of its expert

@group(0) @binding(3) var<storage, read> weights: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) thread: vec3<u32>) {
    let row = thread.y / SLOTS;
    let slot = thread.y % SLOTS;
    let c = thread.x;
    if (row >= live_rows() || c >= params.cols) { return; }
    let x = arena[params.in0 + row * params.in0_stride + slot * params.cols + c];
    var sum = 0.0;
    if (!(params.skip_soft == 1u && is_soft(row))) {
        var panel = c / 16u;
        if (EXPERTS == 1u) { panel += params.panels * u32(arena[params.in2 + row * params.in2_stride + slot]); }
        let a = params.in1 + row * params.in1_stride + slot * params.rank;
        let b = panel * params.rank * 16u + c % 16u;
        for (var j = 0u; j < params.rank; j++) { sum += arena[a + j] * weights[b + j * 16u]; }
    }
    arena[params.out0 + row * params.out0_stride + slot * params.cols + c] = x + params.scale * sum;
}
