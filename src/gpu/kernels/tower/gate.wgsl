// uses: params.tower common/pass common/arena4 tower/clamp <output>
// tower_gate: y = clamp(f(clamp(in0), clamp(in1))), f = geglu, silu or glu (OP).
// in0, in1, y: [rows][cols]; <output>: f32 in the arena, or f16 slabs. Four values per thread.
override OP: u32 = 0u;
const GEGLU = 0u; // gelu(in0) * in1
const SILU = 1u;  // in0 * sigmoid(in0)
const GLU = 2u;   // in0 * sigmoid(in1)
const F16_BINDING = 3u;

// 1 / (1 + exp(-u)), which keeps its digits near 0
fn sigmoid(u: vec4<f32>) -> vec4<f32> {
    let e = exp(-min(abs(u), vec4<f32>(80.0)));
    return select(e, vec4<f32>(1.0), u >= vec4<f32>()) / (1.0 + e);
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) thread: vec3<u32>) {
    let c = thread.x;
    let row = thread.y;
    if (row >= live_rows() || 4u * c >= params.cols) { return; }
    let a = clamp4(arena4[(params.in0 + row * params.in0_stride) / 4u + c], vec2<f32>(params.low0, params.high0));
    var y = a;
    if (OP == SILU) {
        y *= sigmoid(a);
    } else {
        let b = clamp4(arena4[(params.in1 + row * params.in1_stride) / 4u + c], vec2<f32>(params.low1, params.high1));
        if (OP == GLU) {
            y *= select(b, sigmoid(b), not_nan(b));
        } else { // x / 2 * (1 + tanh(u)) is x * sigmoid(2u)
            y *= sigmoid(1.5957691216057308 * a * (1.0 + 0.044715 * a * a)) * b;
        }
    }
    store4(params.out0, params.out0_stride, row, c, clamp4(y, vec2<f32>(params.low2, params.high2)));
}
