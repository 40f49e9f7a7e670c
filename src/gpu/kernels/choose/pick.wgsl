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
@group(0) @binding(2) var<storage, read> work: array<u32>;
@group(0) @binding(3) var<storage, read_write> rows: array<u32>; // the parameter block; see ../common.wgsl
@group(0) @binding(4) var<storage, read_write> answer: array<u32>;

const DRAW = 2u;           // in rows: the uniform number
const CHOSEN = 1540u;      // in rows: the token, for the next pass

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

// Items: maxima of runs, then keys of the tokens in the runs selected.
fn id_of(item: u32) -> u32 { return run[item / RUN] * RUN + item % RUN; }
fn item_of(tokens: bool, item: u32) -> u32 {
    if (tokens) { return work[id_of(item)]; }
    return work[runs_at() + item];
}

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

// The first `want` of n items by key descending, then by number, go to `picked` in order of their numbers.
fn pick(local: u32, tokens: bool, n: u32, want: u32) {
    var least = 0xffffffffu;
    var most = 0u;
    for (var i = local; i < n; i += 256u) {
        let k = item_of(tokens, i);
        if (k != 0u) {
            least = min(least, k);
            most = max(most, k);
        }
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
            atomicStore(&histogram[255u - local], 0u);
            workgroupBarrier();
            for (var i = local; i < n && width > 0u; i += 256u) {
                let k = item_of(tokens, i);
                let y = k - least;
                if (k != 0u && (above == 32u || (y >> above) == (threshold >> above))) {
                    atomicAdd(&histogram[255u - extractBits(y, shift, width)], 1u); // greatest first
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
    let stretch = (n + 255u) / 256u;
    let begin = min(local * stretch, n);
    let end = min(begin + stretch, n);
    var greater = 0u;
    var equal = 0u;
    for (var i = begin; i < end; i++) {
        let k = item_of(tokens, i);
        if (k != 0u && k - least > threshold) { greater += 1u; }
        if (k != 0u && k - least == threshold) { equal += 1u; }
    }
    let ties_before = scanned[scan(local, equal) + local] - equal;
    let taken = min(equal, select(0u, ties - ties_before, ties > ties_before));
    workgroupBarrier();
    let upto = scanned[scan(local, greater + taken) + local];
    var at = upto - greater - taken;
    var tie = 0u;
    for (var i = begin; i < end; i++) {
        let k = item_of(tokens, i);
        let ties_in = k != 0u && k - least == threshold;
        if ((k != 0u && k - least > threshold) || (ties_in && tie < taken)) {
            if (at < 256u) { picked[at] = i; }
            at += 1u;
        }
        if (ties_in) { tie += 1u; }
    }
    if (local == 255u) { n_picked = min(upto, 256u); }
    workgroupBarrier();
}

// By key descending, then by id; entries behind the last have key 0.
fn sort(local: u32) {
    for (var size = 2u; size <= 256u; size <<= 1u) {
        for (var gap = size / 2u; gap > 0u; gap >>= 1u) {
            let other = local ^ gap;
            let my_key = best_key[local];
            let my_id = best_id[local];
            let its_key = best_key[other];
            let its_id = best_id[other];
            workgroupBarrier();
            let i_am_better = my_key > its_key || (my_key == its_key && my_id < its_id);
            let better_here = (local < other) == ((local & size) == 0u);
            if (i_am_better != better_here) {
                best_key[local] = its_key;
                best_id[local] = its_id;
            }
            workgroupBarrier();
        }
    }
}

// Greatest logit and sum over all blocks: to answer[at] and answer[at + 1].
fn add_up(local: u32, word: u32, at: u32) {
    let parts = parts_at() + word;
    var most = 0u;
    for (var b = local; b < n_blocks(); b += 256u) { most = max(most, work[parts + b * PART]); }
    high[local] = most;
    workgroupBarrier();
    for (var half = 128u; half > 0u; half >>= 1u) {
        if (local < half) { high[local] = max(high[local], high[local + half]); }
        workgroupBarrier();
    }
    most = high[0];
    var total = 0.0;
    for (var b = local; b < n_blocks(); b += 256u) {
        let key = work[parts + b * PART];
        if (key != 0u) { total += bitcast<f32>(work[parts + b * PART + 1u]) * exp_of(below(value_of(key), value_of(most))); }
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
    pick(local, false, n_runs(), want);
    run[local] = picked[local];
    let runs = n_picked;
    workgroupBarrier();
    pick(local, true, runs * RUN, want);
    let count = n_picked;
    best_key[local] = 0u;
    best_id[local] = 0xffffffffu;
    if (local < count) {
        best_id[local] = id_of(picked[local]);
        best_key[local] = work[best_id[local]];
    }
    workgroupBarrier();
    if (want > 1u) { sort(local); }
    if (local < count) {
        let at = LIST + 3u * local;
        answer[at] = bits_of(best_key[local]);
        answer[at + 1u] = best_id[local];
        answer[at + 2u] = arena[ask[PLACE] + best_id[local]];
    }
    var finite = 0u;
    for (var b = local; b < n_blocks(); b += 256u) { finite |= work[parts_at() + b * PART + 4u]; }
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
    if ((ask[FLAGS] & RAW_SUM) != 0u) { add_up(local, 2u, 6u); }
    workgroupBarrier();
    if ((ask[FLAGS] & SUM) != 0u) { add_up(local, 0u, 4u); }
    workgroupBarrier();
    var at = 0u;
    if ((ask[FLAGS] & GREEDY) == 0u) { at = choose(local, count); }
    if (local == 0u) {
        let id = select(0u, best_id[at], count > 0u);
        answer[2] = id;
        rows[CHOSEN] = id;
    }
}
