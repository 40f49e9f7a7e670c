// uses: common/pass common/arena4 tower/clamp <output>
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
    if (row >= live_rows() || 4u * c >= step.cols) { return; }
    let a = clamp4(arena4[(step.in0 + row * step.in0_stride) / 4u + c], step.bounds01.xy);
    var y = a;
    if (OP == SILU) {
        y *= sigmoid(a);
    } else {
        let b = clamp4(arena4[(step.in1 + row * step.in1_stride) / 4u + c], step.bounds01.zw);
        if (OP == GLU) {
            y *= select(b, sigmoid(b), not_nan(b));
        } else { // x / 2 * (1 + tanh(u)) is x * sigmoid(2u)
            y *= sigmoid(1.5957691216057308 * a * (1.0 + 0.044715 * a * a)) * b;
        }
    }
    store4(step.out0, step.out0_stride, row, c, clamp4(y, step.bounds23.xy));
}
