// uses: choose/common
// choose_scan: the first of two kernels after the last product of a pass. Reads the row of logits once: bias and
// penalties, keys, the largest key of every run of 32, and each block's partial sums of exponentials. The row itself
// does not change.
// arena: the logits, [choices][vocabulary]; work: see choose/common. One workgroup per choice and 1024 tokens.
@group(0) @binding(1) var<storage, read> arena: array<u32>;
@group(0) @binding(2) var<storage, read_write> work: array<u32>;

var<workgroup> row: array<u32, 1024>;
var<workgroup> highest: array<u32, 256>;
var<workgroup> sums: array<f32, 256>;

// Mantissa of a positive number, with its leading bit, and its exponent.
fn mantissa_of(x: u32) -> u32 {
    return select(x << (countLeadingZeros(x) - 8u), (x & 0x7fffffu) | 0x800000u, x >= 0x800000u);
}
fn exponent_of(x: u32) -> i32 { return select(9 - i32(countLeadingZeros(x)), i32(x >> 23u), x >= 0x800000u); }

// a / b for positive numbers, round_half_away as IEEE 754 requires (but subnormal results become 0): WGSL's own
// division may be 2.5 units in the last place off, and the host must be able to check the result.
fn divide(a: u32, b: u32) -> u32 {
    let divisor = mantissa_of(b);
    var rest = mantissa_of(a);
    var exponent = exponent_of(a) - exponent_of(b) + 127;
    if (rest < divisor) {
        rest <<= 1u;
        exponent -= 1;
    }
    var quotient = 0u; // 24 bits and one for rounding
    for (var i = 0u; i < 25u; i++) {
        quotient <<= 1u;
        if (rest >= divisor) {
            rest -= divisor;
            quotient |= 1u;
        }
        rest <<= 1u;
    }
    var mantissa = quotient >> 1u;
    if ((quotient & 1u) == 1u && (rest != 0u || (mantissa & 1u) == 1u)) { mantissa += 1u; }
    if (mantissa == 0x1000000u) {
        mantissa >>= 1u;
        exponent += 1;
    }
    if (exponent <= 0) { return 0u; }
    return select((u32(exponent) << 23u) | (mantissa & 0x7fffffu), 0x7f800000u, exponent >= 255);
}

// bz_edits_apply, bit for bit: bias, then the penalty of a token that was seen.
fn edited(logit: u32, request: u32, edit: u32) -> u32 {
    let bias = ask[edit + 1u];
    let logit_not_finite = (logit & 0x7f800000u) == 0x7f800000u; // inf or NaN
    let bias_not_finite = (bias & 0x7f800000u) == 0x7f800000u;
    if (logit_not_finite) {
        return select(logit, 0x7fc00000u, bias_not_finite && bias != logit); // inf - inf: NaN
    }
    if (bias_not_finite) { return bias; }
    var x = bitcast<u32>(bitcast<f32>(logit) + bitcast<f32>(bias));
    if (ask[edit + 2u] == 0u || (x & 0x7f800000u) == 0x7f800000u) { return x; }
    if (x != 0u && x < 0x80000000u) {
        x = divide(x, ask[request + REPETITION]);
    } else {
        // kept apart from the subtraction: fused, they would round once
        x = bitcast<u32>(bitcast<f32>(x) * bitcast<f32>(ask[request + REPETITION])) ^ ask[request + ZERO];
    }
    return bitcast<u32>(bitcast<f32>(x) - bitcast<f32>(ask[edit + 3u]));
}

fn keys_of(v: vec4<u32>) -> vec4<u32> {
    return vec4<u32>(key_of(v.x), key_of(v.y), key_of(v.z), key_of(v.w));
}

fn largest(k: vec4<u32>) -> u32 { return max(max(k.x, k.y), max(k.z, k.w)); }

fn term(key: u32, top: u32) -> f32 {
    return select(0.0, exp_of(below(value_of(key), value_of(top))), key != 0u);
}

// Largest key of the block, to highest[0]; `mine` is the largest of the thread's four.
fn reduce_max(local: u32, mine: u32) {
    highest[local] = mine;
    workgroupBarrier();
    for (var half = 128u; half > 0u; half >>= 1u) {
        if (local < half) { highest[local] = max(highest[local], highest[local + half]); }
        workgroupBarrier();
    }
}

// Sum of the block's exponentials, to sums[0]; highest[0] is the block's largest key.
fn reduce_sum(local: u32, k: vec4<u32>) {
    let top = highest[0];
    sums[local] = (term(k.x, top) + term(k.y, top)) + (term(k.z, top) + term(k.w, top));
    workgroupBarrier();
    for (var half = 128u; half > 0u; half >>= 1u) {
        if (local < half) { sums[local] += sums[local + half]; }
        workgroupBarrier();
    }
}

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>) {
    let block = group.x + group.y * groups.x;
    let choice = group.z;
    if (block >= n_blocks() || choice >= ask[N_CHOICES]) { return; }
    let request = request_of(choice);
    let flags = ask[request + FLAGS];
    let first = block * BLOCK;
    let part = parts_at(choice) + block * PART;
    var logits = vec4<u32>(0xff800000u); // past the vocabulary: never listed
    for (var i = 0u; i < 4u; i++) {
        let id = first + 4u * local + i;
        if (id < ask[VOCAB]) { logits[i] = arena[logits_at(choice) + id]; }
    }
    let finite = (logits & vec4<u32>(0x7f800000u)) != vec4<u32>(0x7f800000u);
    reduce_max(local, select(0u, 1u, any(finite)));
    if (local == 0u) { work[part + 4u] = highest[0]; }
    workgroupBarrier();

    if ((flags & RAW_SUM) != 0u) {
        let k = keys_of(logits);
        reduce_max(local, largest(k));
        reduce_sum(local, k);
        if (local == 0u) {
            work[part + 2u] = highest[0];
            work[part + 3u] = bitcast<u32>(sums[0]);
        }
        workgroupBarrier();
    }
    if (ask[request + N_EDITS] > 0u) {
        for (var i = 0u; i < 4u; i++) { row[4u * local + i] = logits[i]; }
        workgroupBarrier();
        for (var e = local; e < ask[request + N_EDITS]; e += 256u) {
            let edit = request + EDITS + 4u * e;
            let at = ask[edit] - first; // ids are unique
            if (at < BLOCK) { row[at] = edited(row[at], request, edit); }
        }
        workgroupBarrier();
        for (var i = 0u; i < 4u; i++) { logits[i] = row[4u * local + i]; }
    }
    let k = keys_of(logits);
    for (var i = 0u; i < 4u; i++) { work[keys_at(choice) + first + 4u * local + i] = k[i]; }
    highest[local] = largest(k);
    workgroupBarrier();
    if (local < BLOCK / RUN) { // eight threads have a run
        var top = 0u;
        for (var i = 0u; i < 8u; i++) { top = max(top, highest[8u * local + i]); }
        work[runs_at(choice) + block * (BLOCK / RUN) + local] = top;
    }
    workgroupBarrier();
    if ((flags & SUM) != 0u) {
        reduce_max(local, largest(k));
        reduce_sum(local, k);
        if (local == 0u) {
            work[part] = highest[0];
            work[part + 1u] = bitcast<u32>(sums[0]);
        }
    }
}
