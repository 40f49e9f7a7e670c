// uses: params.tower common/pass common/arena tower/clamp tower/weights
// tower_values: steps of encoders that work value by value, one formula per OP:
//   POSITION    x + weight[x position] + weight[positions + y position]
//   CLAMP       x clamped to low0 .. high0
//   ADD_VECTOR  x + scale * weight;  ADD_SCALED in0 + scale * in1;  MUL_VECTOR x * scale * weight[c % width]
//   RELU, SILU; GLU  x * sigmoid(the value `width` later)
//   POOL        scale * mean of width x width patches;  CONV_TIME  causal convolution over `width` rows, per channel
// in0: [rows][cols]. One thread per value.
override OP: u32;
const POSITION = 0u;
const CLAMP = 1u;     
const ADD_VECTOR = 2u;
const ADD_SCALED = 3u;
const RELU = 4u;
const SILU = 5u;
const GLU = 6u;
const MUL_VECTOR = 7u;
const POOL = 8u;
const CONV_TIME = 9u;

// Patches per row of the picture.
fn across() -> u32 { return rows[2]; }

fn sigmoid(x: f32) -> f32 {
    let e = exp(-min(abs(x), 80.0));
    return select(e, 1.0, x >= 0.0) / (1.0 + e);
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) thread: vec3<u32>) {
    let c = thread.x;
    let row = thread.y;
    if (row >= live_rows() || c >= params.cols) { return; }
    let a = params.in0 + row * params.in0_stride;
    var y = 0.0;
    if (OP == POSITION) {
        let x_position = row % across();
        let y_position = row / across();
        y = arena[a + c] + (weight_at(x_position * params.cols + c) + weight_at((params.positions + y_position) * params.cols + c));
    } else if (OP == CLAMP) {
        y = clamp1(arena[a + c], params.low0, params.high0);
    } else if (OP == ADD_VECTOR) {
        y = arena[a + c] + params.scale * weight_at(c);
    } else if (OP == ADD_SCALED) {
        y = arena[a + c] + params.scale * arena[params.in1 + row * params.in1_stride + c];
    } else if (OP == RELU) {
        y = clamp1(arena[a + c], 0.0, 3.0e38);
    } else if (OP == SILU) {
        y = arena[a + c] * sigmoid(arena[a + c]);
    } else if (OP == GLU) {
        y = arena[a + c] * sigmoid(arena[a + params.width + c]);
    } else if (OP == MUL_VECTOR) {
        y = arena[a + c] * params.scale;
        if (params.has_weight == 1u) { y *= weight_at(c % params.width); }
    } else if (OP == POOL) {
        let side = params.width;
        let tokens = across() / side;
        let first = row / tokens * side * across() + row % tokens * side;
        for (var p = 0u; p < side * side; p++) {
            y += arena[params.in0 + (first + p / side * across() + p % side) * params.in0_stride + c];
        }
        y = y / f32(side * side) * params.scale;
    } else {
        for (var j = 0u; j < params.width; j++) {
            if (row + j + 1u >= params.width) {
                y += weight_at(c * params.width + j) * arena[params.in0 + (row + j + 1u - params.width) * params.in0_stride + c];
            }
        }
    }
    arena[params.out0 + row * params.out0_stride + c] = y;
}
