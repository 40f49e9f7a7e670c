// attend for many rows: a workgroup takes 32 rows of one query head and walks over the visible positions, 32 at a time,
// so that keys and values are fetched once for all of them. Scores, running maxima and sums are f32.
// HEAD / PER is a power of two, at most 128.
override PER: u32 = 8u;             // values in a vector of the cache: 8 f16 or 4 f32
override HEAD: u32 = 256u;
override ACROSS: u32 = 32u;         // threads side by side over a row's values: the vectors of a head, at most 32
override VECTORS: u32 = HEAD / PER; // of a head
override TALL: u32 = 256u / ACROSS; // threads over the rows
override HIGH: u32 = 32u / TALL;    // rows of a thread
override WIDE: u32 = VECTORS / ACROSS; // vectors of a thread
const LOWEST = -3.0e38;

@group(0) @binding(3) var<storage, read> keys: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> values: array<vec4<u32>>;

var<workgroup> query: array<vec4<f32>, 512>; // [32 rows][64 values]
var<workgroup> share: array<f32, 1024>;      // [row][position]: scores, then their exponentials
var<workgroup> part: array<f32, 256>;        // [row][8]
var<workgroup> highest: array<f32, 32>;      // of each row so far
var<workgroup> total: array<f32, 32>;
var<workgroup> shrink: array<f32, 32>;

fn cache_row(position: u32) -> u32 {
    return select(position - step.first_row, position % max(step.ring, 1u), step.ring > 0u);
}

fn low(v: vec4<u32>) -> vec4<f32> {
    if (PER == 8u) { return vec4<f32>(unpack2x16float(v.x), unpack2x16float(v.y)); }
    return bitcast<vec4<f32>>(v);
}

fn high(v: vec4<u32>) -> vec4<f32> { return vec4<f32>(unpack2x16float(v.z), unpack2x16float(v.w)); }

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let n = live_rows();
    let row0 = group.y * 32u;
    if (row0 >= n) { return; }
    let kv_head = group.x / (step.heads / step.kv_heads);
    let last = min(row0 + 31u, n - 1u);
    let end = min(last_visible(last) + 1u, step.first_row + step.row_count);
    let q = (step.in0 + group.x * HEAD) / 4u;
    // scoring: one position and four rows
    let mine = local % 32u;
    let rows = local / 32u * 4u;
    let lines = min(vec4<u32>(row0 + rows) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(last));
    let lasts = vec4<u32>(last_visible(lines.x), last_visible(lines.y), last_visible(lines.z), last_visible(lines.w));
    let firsts = vec4<u32>(first_visible(lines.x), first_visible(lines.y), first_visible(lines.z), first_visible(lines.w));
    // softmax: an eighth of a row
    let line = local / 8u;
    let piece = local % 8u * 4u;
    // adding up: HIGH rows and WIDE vectors
    let across = local % ACROSS;
    let down = local / ACROSS * HIGH;
    var sum: array<vec4<f32>, 16>; // [row][vector][low and high half]
    if (local < 32u) {
        highest[local] = LOWEST;
        total[local] = 0.0;
    }
    for (var j = max(first_visible(row0), step.first_row); j < end; j += 32u) {
        let k = (cache_row(min(j + mine, end - 1u)) * step.kv_heads + kv_head) * VECTORS;
        var s = vec4<f32>();
        for (var c = 0u; c < HEAD; c += 64u) {
            for (var i = local; i < 512u; i += 256u) {
                let r = min(row0 + i / 16u, last);
                query[i] = arena4[q + r * (step.in0_stride / 4u) + c / 4u + i % 16u];
            }
            workgroupBarrier();
            for (var i = 0u; i < 64u / PER; i++) {
                let key = keys[k + c / PER + i];
                let a = low(key);
                let at = rows * 16u + i * (PER / 4u);
                s += vec4<f32>(dot(query[at], a), dot(query[at + 16u], a), dot(query[at + 32u], a), dot(query[at + 48u], a));
                if (PER == 8u) {
                    let b = high(key);
                    s += vec4<f32>(dot(query[at + 1u], b), dot(query[at + 17u], b), dot(query[at + 33u], b), dot(query[at + 49u], b));
                }
            }
            workgroupBarrier();
        }
        let p = vec4<u32>(j + mine);
        let visible = (p <= lasts) & (p >= firsts) & (p < vec4<u32>(end));
        s = select(vec4<f32>(LOWEST), s, visible);
        for (var r = 0u; r < 4u; r++) { share[(rows + r) * 32u + mine] = s[r]; }
        workgroupBarrier();
        var most = highest[line];
        for (var i = 0u; i < 32u; i++) { most = max(most, share[line * 32u + i]); }
        var e = vec4<f32>();
        for (var i = 0u; i < 4u; i++) {
            let x = share[line * 32u + piece + i];
            e[i] = select(exp(max(x - most, -80.0)), 0.0, x == LOWEST);
        }
        part[local] = e.x + e.y + e.z + e.w;
        workgroupBarrier();
        for (var i = 0u; i < 4u; i++) { share[line * 32u + piece + i] = e[i]; }
        if (piece == 0u) {
            let before = highest[line];
            let by = select(exp(max(before - most, -80.0)), 0.0, before == LOWEST);
            var t = total[line] * by;
            for (var i = 0u; i < 8u; i++) { t += part[local + i]; }
            total[line] = t;
            shrink[line] = by;
            highest[line] = most;
        }
        workgroupBarrier();
        for (var r = 0u; r < HIGH; r++) {
            for (var w = 0u; w < WIDE * (PER / 4u); w++) { sum[r * WIDE * (PER / 4u) + w] *= shrink[down + r]; }
        }
        for (var t = 0u; t < 32u; t++) {
            let v = (cache_row(min(j + t, end - 1u)) * step.kv_heads + kv_head) * VECTORS + across;
            for (var w = 0u; w < WIDE; w++) {
                let value = values[v + w * ACROSS];
                for (var r = 0u; r < HIGH; r++) {
                    let x = share[(down + r) * 32u + t];
                    let at = (r * WIDE + w) * (PER / 4u);
                    sum[at] += x * low(value);
                    if (PER == 8u) { sum[at + 1u] += x * high(value); }
                }
            }
        }
        workgroupBarrier(); // before share is written again
    }
    for (var r = 0u; r < HIGH; r++) {
        let row = row0 + down + r;
        if (row > last) { break; }
        var y = (step.out0 + row * step.out0_stride + group.x * HEAD) / 4u;
        var whole = total[down + r];
        if (step.parts > 1u) {
            y = (step.out1 + ((row * step.heads + group.x) * step.parts + step.first_part) * (HEAD + 4u)) / 4u + 1u;
            if (across == 0u) { arena4[y - 1u] = vec4<f32>(highest[down + r], whole, 0.0, 0.0); }
            whole = 1.0;
        }
        for (var w = 0u; w < WIDE; w++) {
            let at = (r * WIDE + w) * (PER / 4u);
            let column = (across + w * ACROSS) * (PER / 4u);
            arena4[y + column] = sum[at] / whole;
            if (PER == 8u) { arena4[y + column + 1u] = sum[at + 1u] / whole; }
        }
    }
}
