// uses: params.expert common/pass common/arena common/split_input
// route: the router of a mixture of experts. The `slots` largest of a row's logits, ties by index, and their softmax.
// in0: [rows][experts] logits -> out0: [rows][slots] indices, out1: [rows][slots] weights. Up to 64 of 1024.
//
// One workgroup per row. The rank of an expert is the number of those that precede it: all are counted at once, where
// finding one maximum after the other would synchronize the workgroup for each.
override SUMS: u32 = 0u;     // split-K partial sums of the logits; 0: not split
override VECTORS: u32 = 32u; // of a row's logits
const THREADS = 128u;

var<workgroup> keys: array<vec4<u32>, VECTORS>; // ordered as the logits; 0, below all others, past the last one
var<workgroup> best: array<f32, 64>;

// Increases with x; the same for both zeros.
fn key_of(x: f32) -> u32 {
    let bits = bitcast<u32>(select(x, 0.0, x == 0.0));
    return select(bits | 0x80000000u, ~bits, bits >= 0x80000000u);
}

// How many of the four experts 4 i .. 4 i + 3 precede `expert`.
fn before(four: vec4<u32>, i: u32, key: u32, expert: u32) -> u32 {
    let first = vec4<u32>(4u * i) + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(expert);
    let goes = select(vec4<u32>(0u), vec4<u32>(1u), (four > vec4<u32>(key)) | ((four == vec4<u32>(key)) & first));
    return goes.x + goes.y + goes.z + goes.w;
}

fn logit(row: u32, expert: u32) -> f32 {
    return sum_splits(params.in0 + row * params.in0_stride + expert, params.in0_stride * params.split_rows, SUMS);
}

@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y;
    if (row >= live_rows()) { return; }
    for (var e = local; e < 4u * VECTORS; e += THREADS) {
        var key = 0u;
        if (e < params.experts) { key = key_of(logit(row, e)); }
        keys[e / 4u][e % 4u] = key;
    }
    workgroupBarrier();
    for (var e = local; e < params.experts; e += THREADS) {
        let key = keys[e / 4u][e % 4u];
        var rank = 0u;
        for (var i = 0u; i < VECTORS; i++) { rank += before(keys[i], i, key, e); }
        if (rank < params.slots) {
            best[rank] = logit(row, e);
            arena[params.out0 + row * params.out0_stride + rank] = f32(e); // as a float: the bits of a small integer may be flushed
        }
    }
    workgroupBarrier();
    if (local < params.slots) {
        var total = 0.0;
        for (var i = 0u; i < params.slots; i++) { total += exp(max(best[i] - best[0], -80.0)); }
        arena[params.out1 + row * params.out1_stride + local] = exp(max(best[local] - best[0], -80.0)) / total;
    }
}
