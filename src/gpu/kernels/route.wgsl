// route: the `experts` best of a row's logits, equal ones by number, and their softmax shares. Up to 64 of 1024; one
// workgroup per row. An expert's place is the number of those that go before it: all are counted at once, where finding one best after
// the other waits for the whole workgroup in every turn.
override SUMS: u32 = 0u;   // splits that logits are the sums of, 0: none
override FOURS: u32 = 32u; // of a row's logits
const THREADS = 128u;

var<workgroup> keys: array<vec4<u32>, FOURS>; // in the order of the logits; behind the last one 0, which is below all
var<workgroup> best: array<f32, 64>;

// Greater for a greater x, the same for both zeros.
fn key_of(x: f32) -> u32 {
    let bits = bitcast<u32>(select(x, 0.0, x == 0.0));
    return select(bits | 0x80000000u, ~bits, bits >= 0x80000000u);
}

// Of four keys, of experts 4 i and on, those that go before an expert.
fn before(four: vec4<u32>, i: u32, key: u32, expert: u32) -> u32 {
    let first = vec4<u32>(4u * i) + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(expert);
    let goes = select(vec4<u32>(0u), vec4<u32>(1u), (four > vec4<u32>(key)) | ((four == vec4<u32>(key)) & first));
    return goes.x + goes.y + goes.z + goes.w;
}

fn logit(row: u32, expert: u32) -> f32 {
    return added(step.in0 + row * step.in0_stride + expert, step.in0_stride * step.sum_rows, SUMS);
}

@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y;
    if (row >= live_rows()) { return; }
    for (var e = local; e < 4u * FOURS; e += THREADS) {
        var key = 0u;
        if (e < step.width) { key = key_of(logit(row, e)); }
        keys[e / 4u][e % 4u] = key;
    }
    workgroupBarrier();
    for (var e = local; e < step.width; e += THREADS) {
        let key = keys[e / 4u][e % 4u];
        var place = 0u;
        for (var i = 0u; i < FOURS; i++) { place += before(keys[i], i, key, e); }
        if (place < step.experts) {
            best[place] = logit(row, e);
            arena[step.out0 + row * step.out0_stride + place] = f32(e); // as a number: bits of small integers may be flushed
        }
    }
    workgroupBarrier();
    if (local < step.experts) {
        var total = 0.0;
        for (var i = 0u; i < step.experts; i++) { total += exp(max(best[i] - best[0], -80.0)); }
        arena[step.out1 + row * step.out1_stride + local] = exp(max(best[local] - best[0], -80.0)) / total;
    }
}
