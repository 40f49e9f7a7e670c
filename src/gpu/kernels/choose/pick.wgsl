// From what scan.wgsl left to the candidates, best first, the sums, and a token. One workgroup.
//
// The `wanted` runs with the greatest maxima hold the `wanted` best tokens (a run's best token is at least as
// good as all of its others, and equal ones are taken in the order of their ids). So: select that many
// runs, then that many of their tokens, then sort those. Selecting is by digits from the top, with a
// histogram of counts: the result does not depend on which thread comes first.
//
// The choice is made as sample/sampler.c makes it, but in f32: the host, which has the last word, repeats it
// in its own way.
@group(0) @binding(1) var<storage, read> arena: array<u32>;
@group(0) @binding(2) var<storage, read> work4: array<vec4<u32>>; // four at a time: one workgroup waits for each load
@group(0) @binding(3) var<storage, read_write> rows: array<u32>; // the parameter block; see ../common.wgsl
@group(0) @binding(4) var<storage, read_write> answer: array<u32>;

const DRAW = 2u;           // in rows: the uniform number

// answer: how many, is any logit finite, the choice, unused, sums (greatest logit, sum) edited and
// as the model gave it, then per candidate: logit, id, the model's logit.
const LIST = 8u;

var<workgroup> histogram: array<atomic<u32>, 256>;
var<workgroup> scanned: array<u32, 512>; // two halves, so that a round needs one barrier
var<workgroup> low: array<u32, 256>;
var<workgroup> high: array<u32, 256>;
var<workgroup> digit: u32;
var<workgroup> left: u32;
var<workgroup> run: array<u32, 256>;    // runs selected, in order
var<workgroup> picked: array<u32, 256>; // items selected, in order
var<workgroup> n_picked: u32;
var<workgroup> best_key: array<u32, 256>;
var<workgroup> best_id: array<u32, 256>;
var<workgroup> weights: array<f32, 512>;
var<workgroup> sum: array<f32, 256>;
var<workgroup> found: atomic<u32>;

// Items: maxima of runs (those behind the vocabulary are 0), then keys of the tokens in the runs selected.
fn id_of(item: u32) -> u32 { return run[item / RUN] * RUN + item % RUN; }
fn items_at(tokens: bool, four: u32) -> vec4<u32> {
    if (tokens) { return work4[id_of(4u * four) / 4u]; }
    return work4[runs_at() / 4u + four];
}
fn part(block: u32, half: u32) -> vec4<u32> { return work4[(parts_at() + block * PART) / 4u + half]; }

// scanned[half * 256 + i] becomes the sum of mine of threads 0 .. i; returns where. Ends with a barrier.
fn scan(local: u32, mine: u32) -> u32 {
    scanned[local] = mine;
    workgroupBarrier();
    var side = 0u;
    for (var reach = 1u; reach < 256u; reach <<= 1u) {
        var x = scanned[side + local];
        if (local >= reach) { x += scanned[side + local - reach]; }
        side = 256u - side;
        scanned[side + local] = x;
        workgroupBarrier();
    }
    return side;
}

fn scan_weights(local: u32, mine: f32) -> u32 {
    weights[local] = mine;
    workgroupBarrier();
    var side = 0u;
    for (var reach = 1u; reach < 256u; reach <<= 1u) {
        var x = weights[side + local];
        if (local >= reach) { x += weights[side + local - reach]; }
        side = 256u - side;
        weights[side + local] = x;
        workgroupBarrier();
    }
    return side;
}

// The first `want` of n items (a multiple of 4) by key descending, then by number, go to `picked` in order of
// their numbers.
fn pick(local: u32, tokens: bool, n: u32, want: u32) {
    let fours = n / 4u;
    var least = 0xffffffffu;
    var most = 0u;
    for (var i = local; i < fours; i += 256u) {
        let k = items_at(tokens, i);
        let m = select(k, vec4<u32>(0xffffffffu), k == vec4<u32>(0u));
        least = min(least, min(min(m.x, m.y), min(m.z, m.w)));
        most = max(most, max(max(k.x, k.y), max(k.z, k.w)));
    }
    low[local] = least;
    high[local] = most;
    workgroupBarrier();
    for (var half = 128u; half > 0u; half >>= 1u) {
        if (local < half) {
            low[local] = min(low[local], low[local + half]);
            high[local] = max(high[local], high[local + half]);
        }
        workgroupBarrier();
    }
    least = min(low[0], high[0]);
    most = high[0];
    // Keys counted from the least one on, so that the digits tell them apart: logits share their first bits.
    var shift = 32u - countLeadingZeros(most - least);
    var threshold = most - least; // of the last one taken; now of the best
    var ties = 1u;                // how many equal to it are taken
    if (ask[WANTED] > 1u) {
        threshold = 0u;
        ties = want;
        for (var round = 0u; round < 4u; round++) {
            let above = shift;
            shift = select(0u, shift - 8u, shift > 8u);
            let width = above - shift;
            atomicStore(&histogram[local], 0u);
            workgroupBarrier();
            for (var i = local; i < fours && width > 0u; i += 256u) {
                let k = items_at(tokens, i);
                for (var c = 0u; c < 4u; c++) {
                    let y = k[c] - least;
                    if (k[c] != 0u && (above == 32u || (y >> above) == (threshold >> above))) {
                        atomicAdd(&histogram[255u - extractBits(y, shift, width)], 1u); // greatest first
                    }
                }
            }
            if (local == 0u) {
                digit = 0u; // fewer than wanted: take all
                left = 0xffffffffu;
            }
            workgroupBarrier();
            let mine = atomicLoad(&histogram[local]);
            let upto = scanned[scan(local, mine) + local];
            if (width > 0u && upto >= ties && upto - mine < ties) {
                digit = 255u - local;
                left = ties - (upto - mine);
            }
            workgroupBarrier();
            if (width > 0u) {
                threshold |= digit << shift;
                ties = left;
            }
            workgroupBarrier();
        }
    }
    // Each thread looks at a stretch of its own, so that places follow the order of the items.
    let stretch = (fours + 255u) / 256u;
    let begin = min(local * stretch, fours);
    let end = min(begin + stretch, fours);
    let limit = least + threshold; // at least 1: an item that is 0 is below it, or there are no others
    var greater = 0u;
    var equal = 0u;
    for (var i = begin; i < end; i++) {
        let k = items_at(tokens, i);
        greater += countOneBits(mask_of(k > vec4<u32>(limit)));
        equal += countOneBits(mask_of(k == vec4<u32>(max(limit, 1u))));
    }
    let ties_before = scanned[scan(local, equal) + local] - equal;
    let taken = min(equal, select(0u, ties - ties_before, ties > ties_before));
    workgroupBarrier();
    let upto = scanned[scan(local, greater + taken) + local];
    var at = upto - greater - taken;
    var tie = 0u;
    for (var i = begin; i < end && at < upto; i++) {
        let k = items_at(tokens, i);
        for (var c = 0u; c < 4u; c++) {
            let is_tie = k[c] == max(limit, 1u);
            if (k[c] > limit || (is_tie && tie < taken)) {
                picked[min(at, 255u)] = 4u * i + c;
                at += 1u;
            }
            tie += select(0u, 1u, is_tie);
        }
    }
    if (local == 255u) { n_picked = min(upto, 256u); }
    workgroupBarrier();
}

fn mask_of(b: vec4<bool>) -> u32 {
    let bits = select(vec4<u32>(0u), vec4<u32>(1u, 2u, 4u, 8u), b);
    return bits.x | bits.y | bits.z | bits.w;
}

// The candidates in `picked` by key descending, then by id, to best_key and best_id: a candidate's place is the
// number of those better than it. Entries behind the last have key 0.
fn sort(local: u32, count: u32) {
    best_key[local] = 0u;
    best_id[local] = 0u;
    var id = 0u;
    var key = 0u;
    if (local < count) {
        id = id_of(picked[local]);
        key = work4[id / 4u][id % 4u];
    }
    low[local] = key; // in order of ids, as `picked` is
    workgroupBarrier();
    var place = 0u;
    for (var i = 0u; i < count; i++) {
        place += select(0u, 1u, low[i] > key || (low[i] == key && i < local));
    }
    if (local < count) {
        best_key[place] = key;
        best_id[place] = id;
    }
    workgroupBarrier();
}

// Greatest logit and sum over all blocks, of the edited row or the model's: to answer[at] and answer[at + 1].
fn add_up(local: u32, raw: bool, at: u32) {
    var most = 0u;
    for (var b = local; b < n_blocks(); b += 256u) {
        let p = part(b, 0u);
        most = max(most, select(p.x, p.z, raw));
    }
    high[local] = most;
    workgroupBarrier();
    for (var half = 128u; half > 0u; half >>= 1u) {
        if (local < half) { high[local] = max(high[local], high[local + half]); }
        workgroupBarrier();
    }
    most = high[0];
    var total = 0.0;
    for (var b = local; b < n_blocks(); b += 256u) {
        let p = part(b, 0u);
        let key = select(p.x, p.z, raw);
        if (key != 0u) { total += bitcast<f32>(select(p.y, p.w, raw)) * exp_of(below(value_of(key), value_of(most))); }
    }
    sum[local] = total;
    workgroupBarrier();
    for (var half = 128u; half > 0u; half >>= 1u) {
        if (local < half) { sum[local] += sum[local + half]; }
        workgroupBarrier();
    }
    if (local == 0u) {
        answer[at] = select(0xff800000u, bits_of(most), most != 0u);
        answer[at + 1u] = bitcast<u32>(sum[0]);
    }
}

// The first of the candidates 0 .. n at which the running sum of weights reaches the goal; n if none does.
fn reach(local: u32, side: u32, n: u32, goal: f32) -> u32 {
    if (local == 0u) { atomicStore(&found, n); }
    workgroupBarrier();
    if (local < n && weights[side + local] >= goal) { atomicMin(&found, local); }
    workgroupBarrier();
    let at = atomicLoad(&found);
    workgroupBarrier();
    return at;
}

// The place of the chosen candidate; sum[0] is the edited row's sum where that is needed.
fn choose(local: u32, count: u32) -> u32 {
    let top_k = ask[TOP_K];
    let top_p = bitcast<f32>(ask[TOP_P]);
    let draw = bitcast<f32>(rows[DRAW]);
    let temperature = bitcast<f32>(ask[TEMPERATURE]);
    let all = sum[0];
    let mine = value_of(best_key[local]);
    let first = value_of(best_key[0]);
    var n = count;
    if (top_k > 0u) { n = min(n, top_k); }
    let listed = local < n;
    let plain = scan_weights(local, select(0.0, exp_of(below(mine, first)), listed));
    if (top_k == 0u && top_p >= 1.0 && (ask[FLAGS] & MIN_P) == 0u && temperature == 1.0) {
        let at = reach(local, plain, n, draw * all);
        return select(at, 0u, at >= n);
    }
    let total = select(all, weights[plain + 255u], top_k > 0u);
    let last = reach(local, plain, n, top_p * total);
    if (top_p < 1.0) { n = min(n, last + 1u); }
    if ((ask[FLAGS] & MIN_P) != 0u) {
        let least = first + bitcast<f32>(ask[LOG_MIN_P]);
        if (local == 0u) { atomicStore(&found, n); }
        workgroupBarrier();
        if (local > 0u && local < n && mine < least) { atomicMin(&found, local); }
        workgroupBarrier();
        n = atomicLoad(&found);
        workgroupBarrier();
    }
    let d = clamp(0.5 * below(mine, first) / temperature, -44.0, 0.0) * 2.0;
    let drawn = scan_weights(local, select(0.0, exp_of(d), local < n));
    let at = reach(local, drawn, n, draw * weights[drawn + 255u]);
    return select(at, 0u, at >= n);
}

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) local: u32) {
    let want = ask[WANTED];
    pick(local, false, n_blocks() * (BLOCK / RUN), want);
    run[local] = picked[local];
    let runs = n_picked;
    workgroupBarrier();
    pick(local, true, runs * RUN, want);
    let count = n_picked;
    sort(local, count);
    if (local < count) {
        let at = LIST + 3u * local;
        answer[at] = bits_of(best_key[local]);
        answer[at + 1u] = best_id[local];
        answer[at + 2u] = arena[ask[PLACE] + best_id[local]];
    }
    var finite = 0u;
    for (var b = local; b < n_blocks(); b += 256u) { finite |= part(b, 1u).x; }
    low[local] = finite;
    workgroupBarrier();
    for (var half = 128u; half > 0u; half >>= 1u) {
        if (local < half) { low[local] |= low[local + half]; }
        workgroupBarrier();
    }
    if (local == 0u) {
        answer[0] = count;
        answer[1] = low[0];
    }
    if ((ask[FLAGS] & RAW_SUM) != 0u) { add_up(local, true, 6u); }
    workgroupBarrier();
    if ((ask[FLAGS] & SUM) != 0u) { add_up(local, false, 4u); }
    workgroupBarrier();
    var at = 0u;
    if ((ask[FLAGS] & GREEDY) == 0u) { at = choose(local, count); }
    if (local == 0u) {
        let id = select(0u, best_id[at], count > 0u);
        answer[2] = id;
        rows[CHOSEN] = id;
    }
}
