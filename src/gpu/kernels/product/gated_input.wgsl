// uses: params.convert common/split_input common/gelu
// Inputs of a product: [rows][inputs][k] at in0. GATE: gelu(gate) * up, computed here.
override GATE: u32 = 0u;
override SUMS0: u32 = 0u; // split-K partial sums of gates and ups; 0: not split
override SUMS1: u32 = 0u;
const TWO = 1u; // gates at in0, ups at in1
const ONE = 2u; // per input k gates, then k ups, at in0

fn load4(at: u32, between: u32, n: u32) -> vec4<f32> {
    return vec4<f32>(sum_splits(at, between, n), sum_splits(at + 1u, between, n), sum_splits(at + 2u, between, n), sum_splits(at + 3u, between, n));
}

// Stores values 4 four .. 4 four + 3, the only input of its row, as f32, if adapters read them.
fn keep4(row: u32, four: u32, x: vec4<f32>) {
    if (params.kept_stride != 0u) {
        let at = params.kept + row * params.kept_stride + four * 4u;
        for (var i = 0u; i < 4u; i++) { arena[at + i] = x[i]; }
    }
}

// Values 4 four .. 4 four + 3.
fn input4(row: u32, input: u32, four: u32) -> vec4<f32> {
    let at = params.in0 + row * params.in0_stride + select(1u, 2u, GATE == ONE) * input * params.k + four * 4u;
    let x = load4(at, params.in0_stride * params.split_rows, SUMS0);
    if (GATE == 0u) { return x; }
    let up = select(params.in1 + row * params.in1_stride + input * params.k + four * 4u, at + params.k, GATE == ONE);
    return vec4<f32>(gelu(x.x), gelu(x.y), gelu(x.z), gelu(x.w)) * load4(up, params.in1_stride * params.split_rows, SUMS1);
}
