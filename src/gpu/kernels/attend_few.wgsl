// attend for few rows, the form of decoding: a workgroup per row, query head and split of the visible positions,
// with the query's norm and rope before. Keys are taken 16 at a time, 16 threads to a key; then the threads share
// the values out by position and by column. Each split leaves (maximum, sum, columns) for combine.wgsl.
// HEAD is known when compiling, so that loops have a fixed length and their loads are under way together.
override PER: u32 = 8u;        // values in a vector of the cache: 8 f16 or 4 f32
override SPLITS: u32 = 16u;
override HEAD: u32 = 256u;     // values of a head, a multiple of 8
override TURNS: bool = false;  // norm and rope the query: weight query_weight, angles in1
override SHARES: u32 = 8u;     // positions that are added up at once: a power of two, at most KEYS and 256 / VECTORS
override VECTORS: u32 = HEAD / PER; // of a head
const KEYS = 16u;
const LOWEST = -3.0e38;

@group(0) @binding(3) var<storage, read> keys: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> values: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read> query_weight: array<f32>;

var<workgroup> query: array<f32, HEAD>;
var<workgroup> score: array<f32, 256>;      // [KEYS][16 threads], then sums in [key * 16]
var<workgroup> column: array<f32, 256u * PER>; // [SHARES][HEAD]

fn load_query(row: u32, head: u32, local: u32) {
    let q = step.in0 + row * step.in0_stride + head * HEAD;
    var sum = 0.0;
    for (var i = local; i < HEAD; i += 256u) {
        let x = arena[q + i];
        query[i] = x;
        sum += x * x;
    }
    if (TURNS) {
        score[local] = sum;
        workgroupBarrier();
        for (var half_way = 128u; half_way > 0u; half_way >>= 1u) {
            if (local < half_way) { score[local] += score[local + half_way]; }
            workgroupBarrier();
        }
        let r = 1.0 / sqrt(score[0] / f32(HEAD) + step.eps);
        let angles = step.in1 + row * step.in1_stride;
        for (var i = local; i < HEAD / 2u; i += 256u) { // a pair belongs to one thread
            let a = query[i] * r * query_weight[i];
            let b = query[HEAD / 2u + i] * r * query_weight[HEAD / 2u + i];
            let c = arena[angles + i];
            let s = arena[angles + HEAD / 2u + i];
            query[i] = a * c - b * s;
            query[HEAD / 2u + i] = a * s + b * c;
        }
    }
    workgroupBarrier();
}

fn query4(i: u32) -> vec4<f32> { return vec4<f32>(query[i], query[i + 1u], query[i + 2u], query[i + 3u]); }

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let head = group.x / SPLITS;
    let split = group.x % SPLITS;
    let row = group.y;
    if (row >= live_rows()) { return; }
    let kv_head = head / (step.heads / step.kv_heads);
    let first = max(first_visible(row), step.first_row);
    let stop = max(min(last_visible(row) + 1u, step.first_row + step.row_count), first);
    // stretches of whole groups of KEYS, the same for every split
    let stretch = (stop - first + KEYS * SPLITS - 1u) / (KEYS * SPLITS) * KEYS;
    let begin = first + split * stretch;
    let end = min(begin + stretch, stop);
    load_query(row, head, local);

    let key = local / 16u;
    let lane = local % 16u;
    let share = local / VECTORS;
    let vector = local % VECTORS;
    var best = LOWEST;
    var total = 0.0;
    var a = vec4<f32>(); // columns PER * vector and on
    var b = vec4<f32>();
    for (var j = begin; j < end; j += KEYS) {
        let at = (cache_row(min(j + key, stop - 1u)) * step.kv_heads + kv_head) * VECTORS;
        var s = 0.0;
        for (var i = 0u; i < (VECTORS + 15u) / 16u; i++) {
            let u = i * 16u + lane;
            if (u < VECTORS) {
                let k = keys[at + u];
                s += dot(query4(u * PER), low(k));
                if (PER == 8u) { s += dot(query4(u * PER + 4u), high(k)); }
            }
        }
        score[local] = s;
        workgroupBarrier();
        for (var half_way = 8u; half_way > 0u; half_way >>= 1u) {
            if (lane < half_way) { score[local] += score[local + half_way]; }
            workgroupBarrier();
        }
        var most = best;
        for (var t = 0u; t < KEYS; t++) { most = max(most, select(LOWEST, score[t * 16u], j + t < end)); }
        let shrink = exp(max(best - most, -80.0)) * select(1.0, 0.0, best == LOWEST);
        total *= shrink;
        a *= shrink;
        b *= shrink;
        best = most;
        if (share < SHARES) {
            for (var t = 0u; t < KEYS / SHARES; t++) {
                let mine = t * SHARES + share;
                let p = select(0.0, exp(max(score[mine * 16u] - best, -80.0)), j + mine < end);
                let v = values[(cache_row(min(j + mine, stop - 1u)) * step.kv_heads + kv_head) * VECTORS + vector];
                total += p;
                a += p * low(v);
                if (PER == 8u) { b += p * high(v); }
            }
        }
        workgroupBarrier(); // before score is written again
    }
    if (vector == 0u && share < SHARES) { score[share] = total; }
    if (share < SHARES) {
        let at = share * HEAD + vector * PER;
        for (var i = 0u; i < 4u; i++) {
            column[at + i] = a[i];
            if (PER == 8u) { column[at + 4u + i] = b[i]; }
        }
    }
    workgroupBarrier();
    let y = step.out1 + ((row * step.heads + head) * step.parts + step.first_part + split) * (HEAD + 4u);
    for (var i = local; i < HEAD; i += 256u) {
        var sum = 0.0;
        for (var t = 0u; t < SHARES; t++) { sum += column[t * HEAD + i]; }
        arena[y + 4u + i] = sum;
    }
    if (local == 0u) {
        var sum = 0.0;
        for (var t = 0u; t < SHARES; t++) { sum += score[t]; }
        arena[y] = best;
        arena[y + 1u] = sum;
    }
}
