// uses: common/pass_layout common/fed_token choose/common
// choose_pick: the second kernel: candidates, best first, the sums, and a token. One workgroup per choice.
//
// The `wanted` runs with the largest maxima contain the `wanted` best tokens (a run's best token is at least as good as
// all of its others, and ties are taken in order of id). So: select that many runs, then that many of their tokens,
// then sort those.
// Selection is by digits from the top with a histogram: the result does not depend on the order of the threads.
//
// The choice follows sample/sampler.c, but in f32: the host repeats it and decides.
@group(0) @binding(1) var<storage, read> arena: array<u32>;
@group(0) @binding(2) var<storage, read> work4: array<vec4<u32>>; // vec4: a single workgroup waits for each load
@group(0) @binding(3) var<storage, read_write> rows: array<u32>; // the parameter block, see common/pass
@group(0) @binding(4) var<storage, read_write> answer: array<u32>;

// Loops that contain barriers stay loops, by a bound that the compiler does not know: for a software adapter, which makes
// a coroutine of every thread, unrolled ones take ten seconds to compile.
override ROLLED: bool = false;
fn no_more() -> u32 { // 0
    if (ROLLED) { return ask[request_of(0u) + ZERO]; }
    return 0u;
}

const DRAW = 2u; // index in rows: the uniform draw of the first choice

// answer, for each choice: count, 1 if any logit is finite, the chosen token, the token of the row, (largest logit, sum) of the edited row and of the
// model's row; then per candidate: logit, id, the model's logit.
const LIST = 8u;

var<workgroup> histogram: array<atomic<u32>, 256>;
var<workgroup> scanned: array<u32, 512>; // double-buffered: one barrier per round
var<workgroup> low: array<u32, 256>;
var<workgroup> high: array<u32, 256>;
var<workgroup> digit: u32;
var<workgroup> left: u32;
var<workgroup> run: array<u32, 256>;    // selected runs, in order
var<workgroup> picked: array<u32, 256>; // selected items, in order
var<workgroup> n_picked: u32;
var<workgroup> best_key: array<u32, 256>;
var<workgroup> best_id: array<u32, 256>;
var<workgroup> weights: array<f32, 512>;
var<workgroup> sum: array<f32, 256>;
var<workgroup> found: atomic<u32>;

// Items: maxima of runs (0 past the vocabulary), then keys of the tokens in the selected runs.
fn id_of(item: u32) -> u32 { return run[item / RUN] * RUN + item % RUN; }
fn items_at(choice: u32, tokens: bool, four: u32) -> vec4<u32> {
    if (tokens) { return work4[(keys_at(choice) + id_of(4u * four)) / 4u]; }
    return work4[runs_at(choice) / 4u + four];
}
fn part(choice: u32, block: u32, half: u32) -> vec4<u32> { return work4[(parts_at(choice) + block * PART) / 4u + half]; }

// Inclusive sum over the threads: scanned[side + i] = sum of `mine` of threads 0 .. i; returns `side`. Ends with a
// barrier.
fn scan(local: u32, mine: u32) -> u32 {
    scanned[local] = mine;
    workgroupBarrier();
    var side = 0u;
    for (var reach = 1u; reach < 256u + no_more(); reach <<= 1u) {
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
    for (var reach = 1u; reach < 256u + no_more(); reach <<= 1u) {
        var x = weights[side + local];
        if (local >= reach) { x += weights[side + local - reach]; }
        side = 256u - side;
        weights[side + local] = x;
        workgroupBarrier();
    }
    return side;
}

// The first `want` of n items (a multiple of 4) by key descending, then by index, to `picked` in order of index.
fn pick(local: u32, choice: u32, tokens: bool, n: u32, want: u32) {
    let vectors = n / 4u;
    var lowest = 0xffffffffu;
    var highest = 0u;
    for (var i = local; i < vectors; i += 256u) {
        let k = items_at(choice, tokens, i);
        let m = select(k, vec4<u32>(0xffffffffu), k == vec4<u32>(0u));
        lowest = min(lowest, min(min(m.x, m.y), min(m.z, m.w)));
        highest = max(highest, max(max(k.x, k.y), max(k.z, k.w)));
    }
    low[local] = lowest;
    high[local] = highest;
    workgroupBarrier();
    for (var half = 128u; half > no_more(); half >>= 1u) {
        if (local < half) {
            low[local] = min(low[local], low[local + half]);
            high[local] = max(high[local], high[local + half]);
        }
        workgroupBarrier();
    }
    lowest = min(low[0], high[0]);
    highest = high[0];
    // Keys relative to the lowest one, so that their digits differ: logits share their first bits.
    var shift = 32u - countLeadingZeros(highest - lowest);
    var threshold = highest - lowest; // key of the last one taken; now that of the best
    var ties = 1u;                // how many keys equal to it are taken
    if (ask[request_of(choice) + WANTED] > 1u) {
        threshold = 0u;
        ties = want;
        for (var round = 0u; round < 4u + no_more(); round++) {
            let above = shift;
            shift = select(0u, shift - 8u, shift > 8u);
            let width = above - shift;
            atomicStore(&histogram[local], 0u);
            workgroupBarrier();
            for (var i = local; i < vectors && width > 0u; i += 256u) {
                let k = items_at(choice, tokens, i);
                for (var c = 0u; c < 4u; c++) {
                    let y = k[c] - lowest;
                    if (k[c] != 0u && (above == 32u || (y >> above) == (threshold >> above))) {
                        atomicAdd(&histogram[255u - extractBits(y, shift, width)], 1u); // largest first
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
    // Each thread has a range of its own, so that positions follow the order of the items.
    let range = (vectors + 255u) / 256u;
    let begin = min(local * range, vectors);
    let end = min(begin + range, vectors);
    let limit = lowest + threshold; // at least 1, unless all items are 0
    var greater = 0u;
    var equal = 0u;
    for (var i = begin; i < end; i++) {
        let k = items_at(choice, tokens, i);
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
        let k = items_at(choice, tokens, i);
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

// The candidates in `picked` by key descending, then by id, to best_key and best_id: the rank of a candidate is the
// number of better ones. Entries past the last have key 0.
fn sort(local: u32, choice: u32, count: u32) {
    best_key[local] = 0u;
    best_id[local] = 0u;
    var id = 0u;
    var key = 0u;
    if (local < count) {
        id = id_of(picked[local]);
        key = work4[(keys_at(choice) + id) / 4u][id % 4u];
    }
    low[local] = key; // in order of ids, as `picked` is
    workgroupBarrier();
    var rank = 0u;
    for (var i = 0u; i < count; i++) {
        rank += select(0u, 1u, low[i] > key || (low[i] == key && i < local));
    }
    if (local < count) {
        best_key[rank] = key;
        best_id[rank] = id;
    }
    workgroupBarrier();
}

// Largest logit and sum over all blocks, of the edited row or the model's, to answer[at] and answer[at + 1].
fn reduce_blocks(local: u32, choice: u32, raw: bool, at: u32) {
    var highest = 0u;
    for (var b = local; b < n_blocks(); b += 256u) {
        let p = part(choice, b, 0u);
        highest = max(highest, select(p.x, p.z, raw));
    }
    high[local] = highest;
    workgroupBarrier();
    for (var half = 128u; half > no_more(); half >>= 1u) {
        if (local < half) { high[local] = max(high[local], high[local + half]); }
        workgroupBarrier();
    }
    highest = high[0];
    var total = 0.0;
    for (var b = local; b < n_blocks(); b += 256u) {
        let p = part(choice, b, 0u);
        let key = select(p.x, p.z, raw);
        if (key != 0u) { total += bitcast<f32>(select(p.y, p.w, raw)) * exp_of(below(value_of(key), value_of(highest))); }
    }
    sum[local] = total;
    workgroupBarrier();
    for (var half = 128u; half > no_more(); half >>= 1u) {
        if (local < half) { sum[local] += sum[local + half]; }
        workgroupBarrier();
    }
    if (local == 0u) {
        answer[at] = select(0xff800000u, bits_of(highest), highest != 0u);
        answer[at + 1u] = bitcast<u32>(sum[0]);
    }
}

// First candidate at which the running sum of weights reaches the goal; n if none does.
fn reach(local: u32, side: u32, n: u32, goal: f32) -> u32 {
    if (local == 0u) { atomicStore(&found, n); }
    workgroupBarrier();
    if (local < n && weights[side + local] >= goal) { atomicMin(&found, local); }
    workgroupBarrier();
    let at = atomicLoad(&found);
    workgroupBarrier();
    return at;
}

// Rank of the chosen candidate; sum[0] is the edited row's sum where needed.
fn choose(local: u32, choice: u32, count: u32) -> u32 {
    let request = request_of(choice);
    let top_k = ask[request + TOP_K];
    let top_p = bitcast<f32>(ask[request + TOP_P]);
    let draw = bitcast<f32>(select(ask[CHOICES + 4u * choice + 2u], rows[DRAW], choice == 0u));
    let temperature = bitcast<f32>(ask[request + TEMPERATURE]);
    let all = sum[0];
    let mine = value_of(best_key[local]);
    let first = value_of(best_key[0]);
    var n = count;
    if (top_k > 0u) { n = min(n, top_k); }
    let listed = local < n;
    let plain = scan_weights(local, select(0.0, exp_of(below(mine, first)), listed));
    if (top_k == 0u && top_p >= 1.0 && (ask[request + FLAGS] & MIN_P) == 0u && temperature == 1.0) {
        let at = reach(local, plain, n, draw * all);
        return select(at, 0u, at >= n);
    }
    let total = select(all, weights[plain + 255u], top_k > 0u);
    let last = reach(local, plain, n, top_p * total);
    if (top_p < 1.0) { n = min(n, last + 1u); }
    if ((ask[request + FLAGS] & MIN_P) != 0u) {
        let lowest = first + bitcast<f32>(ask[request + LOG_MIN_P]);
        if (local == 0u) { atomicStore(&found, n); }
        workgroupBarrier();
        if (local > 0u && local < n && mine < lowest) { atomicMin(&found, local); }
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
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let choice = group.x;
    if (choice >= ask[N_CHOICES]) { return; }
    let request = request_of(choice);
    let to = ask[CHOICES + 4u * choice + 1u]; // its answer
    let flags = ask[request + FLAGS];
    let want = ask[request + WANTED];
    var items = n_blocks() * (BLOCK / RUN);
    for (var tokens = 0u; tokens < 2u + no_more(); tokens++) {
        pick(local, choice, tokens == 1u, items, want);
        if (tokens == 0u) {
            run[local] = picked[local];
            items = n_picked * RUN;
            workgroupBarrier();
        }
    }
    let count = n_picked;
    sort(local, choice, count);
    if (local < count) {
        let at = to + LIST + 3u * local;
        answer[at] = bits_of(best_key[local]);
        answer[at + 1u] = best_id[local];
        answer[at + 2u] = arena[logits_at(choice) + best_id[local]];
    }
    var finite = 0u;
    for (var b = local; b < n_blocks(); b += 256u) { finite |= part(choice, b, 1u).x; }
    low[local] = finite;
    workgroupBarrier();
    for (var half = 128u; half > no_more(); half >>= 1u) {
        if (local < half) { low[local] |= low[local + half]; }
        workgroupBarrier();
    }
    if (local == 0u) {
        answer[to] = count;
        answer[to + 1u] = low[0];
    }
    if ((flags & RAW_SUM) != 0u) { reduce_blocks(local, choice, true, to + 6u); }
    workgroupBarrier();
    if ((flags & SUM) != 0u) { reduce_blocks(local, choice, false, to + 4u); }
    workgroupBarrier();
    var at = 0u;
    if ((flags & GREEDY) == 0u) { at = choose(local, choice, count); }
    if (local == 0u) {
        let id = select(0u, best_id[at], count > 0u);
        answer[to + 2u] = id;
        answer[to + 3u] = token_of(choice);
        if (choice == 0u) { rows[CHOSEN] = id; }
    }
}
