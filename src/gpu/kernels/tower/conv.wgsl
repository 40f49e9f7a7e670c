// uses: params.tower common/pass common/arena tower/weights
// tower_conv: 3 x 3 convolution over time and frequency with stride 2. Audio encoder.
// in0: [rows][frames][width][channels]: a row holds `frames` times of `width` frequencies
// out0: half as many times and frequencies, of `outputs` channels. Weights: [output][channel][9 taps].
//
// A workgroup computes 32 frequencies by 32 outputs of one time, 8 channels at a time through workgroup memory; a
// thread computes 4 frequencies by 4 outputs.
const SIDE = 32u;
const INPUTS = 2u * SIDE + 1u; // frequencies that they read

var<workgroup> x_tile: array<vec4<f32>, 3u * INPUTS * 2u>; // [time][frequency][8 channels]
var<workgroup> w_tile: array<vec4<f32>, 9u * 8u * SIDE / 4u>; // [tap][channel][output]

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y;
    if (row >= live_rows()) { return; }
    let channels = params.channels;
    let out_frequencies = params.width / 2u; // frequencies
    let across = (params.outputs + SIDE - 1u) / SIDE;
    let output0 = group.x % across * SIDE;
    let frequency0 = group.x / across * SIDE;
    let time = i32(row * (params.frames / 2u) + group.z);
    let rate = 4u / params.frames;
    let valid = i32((rows[3u + 1u] + rate - 1u) / rate); // times of the sound at this step's rate
    let o = local % 8u;
    let p = local / 8u;
    var y0 = vec4<f32>();
    var y1 = vec4<f32>();
    var y2 = vec4<f32>();
    var y3 = vec4<f32>();
    for (var c = 0u; c < channels; c += 8u) {
        workgroupBarrier();
        for (var i = local; i < 3u * INPUTS * 8u; i += 64u) {
            let at = 2 * time + i32(i / (INPUTS * 8u)) - 1;
            let frequency = i32(2u * frequency0 + i / 8u % INPUTS) - 1;
            let channel = c + i % 8u;
            var x = 0.0;
            if (at >= 0 && at < valid && frequency >= 0 && frequency < i32(params.width) && channel < channels) {
                x = arena[params.in0 + u32(at) / params.frames * params.in0_stride + (u32(at) % params.frames * params.width + u32(frequency)) * channels + channel];
            }
            x_tile[i / 4u][i % 4u] = x;
        }
        for (var i = local; i < 9u * 8u * SIDE; i += 64u) { // in the file: outputs, channels, taps
            let output = i / 72u;
            let channel = i % 72u / 9u;
            var w = 0.0;
            if (output0 + output < params.outputs && c + channel < channels) { w = weight_at(((output0 + output) * channels + c) * 9u + i % 72u); }
            let to = (i % 9u * 8u + channel) * SIDE + output;
            w_tile[to / 4u][to % 4u] = w;
        }
        workgroupBarrier();
        for (var tap = 0u; tap < 9u; tap++) {
            let at = (tap / 3u * INPUTS + 2u * p + tap % 3u) * 2u;
            for (var half = 0u; half < 2u; half++) {
                let w = (tap * 8u + half * 4u) * (SIDE / 4u) + o;
                let w0 = w_tile[w];
                let w1 = w_tile[w + SIDE / 4u];
                let w2 = w_tile[w + SIDE / 2u];
                let w3 = w_tile[w + SIDE / 4u * 3u];
                let x0 = x_tile[at + half];
                let x1 = x_tile[at + half + 32u];
                let x2 = x_tile[at + half + 64u];
                let x3 = x_tile[at + half + 96u];
                y0 += x0.x * w0 + x0.y * w1 + x0.z * w2 + x0.w * w3;
                y1 += x1.x * w0 + x1.y * w1 + x1.z * w2 + x1.w * w3;
                y2 += x2.x * w0 + x2.y * w1 + x2.z * w2 + x2.w * w3;
                y3 += x3.x * w0 + x3.y * w1 + x3.z * w2 + x3.w * w3;
            }
        }
    }
    let exists = time < (valid + 1) / 2; // zero past the end
    for (var i = 0u; i < 4u; i++) {
        let frequency = frequency0 + p + 8u * i;
        let y = select(vec4<f32>(), select(select(y2, y3, i == 3u), select(y0, y1, i == 1u), i < 2u), exists);
        for (var c = 0u; c < 4u; c++) {
            let output = output0 + 4u * o + c;
            if (frequency < out_frequencies && output < params.outputs) {
                arena[params.out0 + row * params.out0_stride + (group.z * out_frequencies + frequency) * params.outputs + output] = y[c];
            }
        }
    }
}
