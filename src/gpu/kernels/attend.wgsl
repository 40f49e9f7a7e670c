// attend: one workgroup per row and query head. Keys are taken 64 at a time: every thread scores one,
// the running maximum and sum are kept for all, then every thread adds up its own columns of V.
override F16: bool = true;
const TILE = 64u;
const LOWEST = -3.0e38;

@group(0) @binding(3) var<storage, read> keys: array<u32>;
@group(0) @binding(4) var<storage, read> values: array<u32>;

var<workgroup> query: array<f32, 1024>;
var<workgroup> score: array<f32, 64>;
var<workgroup> reduced: array<f32, 64>;

fn cache_row(position: u32) -> u32 {
    return select(position, position % max(step.ring, 1u), step.ring > 0u);
}

fn pair(data: u32) -> vec2<f32> { return unpack2x16float(data); }

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let head = group.x;
    let row = group.y;
    if (row >= live_rows()) { return; }
    let d = step.width;
    let kv_head = head / (step.heads / step.kv_heads);
    let position = position_of(row);
    let first = select(0u, position + 1u - step.window, step.window > 0u && position + 1u > step.window);
    let row_words = select(step.kv_heads * d, step.kv_heads * d / 2u, F16);
    let head_word = select(kv_head * d, kv_head * d / 2u, F16);
    let q = step.in0 + row * step.in0_stride + head * d;
    for (var i = local; i < d; i += TILE) { query[i] = arena[q + i]; }
    workgroupBarrier();

    var best = LOWEST;
    var total = 0.0;
    var out: array<f32, 16>; // columns local, local + 64, ...
    for (var j = first; j <= position; j += TILE) {
        let count = min(TILE, position + 1u - j);
        var s = LOWEST;
        if (local < count) {
            let at = cache_row(j + local) * row_words + head_word;
            s = 0.0;
            if (F16) {
                for (var i = 0u; i < d / 2u; i++) {
                    let k = pair(keys[at + i]);
                    s += query[2u * i] * k.x + query[2u * i + 1u] * k.y;
                }
            } else {
                for (var i = 0u; i < d; i++) { s += query[i] * bitcast<f32>(keys[at + i]); }
            }
        }
        score[local] = s;
        reduced[local] = s;
        workgroupBarrier();
        for (var half = 32u; half > 0u; half >>= 1u) {
            if (local < half) { reduced[local] = max(reduced[local], reduced[local + half]); }
            workgroupBarrier();
        }
        let high = max(best, reduced[0]);
        let shrink = exp(max(best - high, -80.0)) * select(1.0, 0.0, best == LOWEST);
        total *= shrink;
        for (var c = 0u; c < 16u; c++) { out[c] *= shrink; }
        best = high;
        workgroupBarrier(); // all have read reduced[0]
        if (local < count) { score[local] = exp(max(score[local] - best, -80.0)); }
        workgroupBarrier();
        for (var t = 0u; t < count; t++) {
            let p = score[t];
            total += p;
            let at = cache_row(j + t) * row_words + head_word;
            for (var c = 0u; c * TILE + local < d; c++) {
                let i = c * TILE + local;
                if (F16) {
                    let two = pair(values[at + i / 2u]);
                    out[c] += p * select(two.x, two.y, (i & 1u) == 1u);
                } else {
                    out[c] += p * bitcast<f32>(values[at + i]);
                }
            }
        }
        workgroupBarrier(); // before score is written again
    }
    let y = step.out0 + row * step.out0_stride + head * d;
    for (var c = 0u; c * TILE + local < d; c++) { arena[y + c * TILE + local] = out[c] / total; }
}
