// route: the `experts` best of a row's logits, equal ones by number, and their softmax shares. Up to
// 64 of 1024; one workgroup per row.
override SUMS: u32 = 0u; // splits that logits are the sums of, 0: none
override HELD: u32 = 1u; // then all of a row: sums are made once

var<workgroup> held: array<f32, HELD>;
var<workgroup> value: array<f32, 64>;
var<workgroup> index: array<u32, 64>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y;
    if (row >= live_rows()) { return; }
    let logits = step.in0 + row * step.in0_stride;
    let ids = step.out0 + row * step.out0_stride;
    let shares = step.out1 + row * step.out1_stride;
    if (SUMS > 0u) { // each thread those that it looks at
        for (var i = local; i < step.width; i += 64u) { held[i] = added(logits + i, step.in0_stride * step.sum_rows, SUMS); }
    }
    var taken = 0u; // bit i: expert local + 64 i of this thread has been chosen
    var highest = 0.0;
    var total = 0.0;
    for (var slot = 0u; slot < step.experts; slot++) {
        var best = -3.4e38;
        var at = 0xffffffffu;
        for (var i = 0u; i * 64u + local < step.width; i++) {
            var x = 0.0;
            if (SUMS > 0u) { x = held[i * 64u + local]; } else { x = arena[logits + i * 64u + local]; }
            if (((taken >> i) & 1u) == 0u && (at == 0xffffffffu || x > best)) {
                best = x;
                at = i * 64u + local;
            }
        }
        value[local] = best;
        index[local] = at;
        workgroupBarrier();
        for (var half = 32u; half > 0u; half >>= 1u) {
            if (local < half) {
                let other = local + half;
                if (value[other] > value[local] || (value[other] == value[local] && index[other] < index[local])) {
                    value[local] = value[other];
                    index[local] = index[other];
                }
            }
            workgroupBarrier();
        }
        let winner = index[0];
        if (slot == 0u) { highest = value[0]; }
        let share = exp(max(value[0] - highest, -80.0));
        total += share;
        if (winner % 64u == local) { taken |= 1u << (winner / 64u); }
        if (local == 0u) {
            arena[ids + slot] = f32(winner); // as a number: bits of small integers may be flushed
            arena[shares + slot] = share;
        }
        workgroupBarrier();
    }
    if (local < step.experts) { arena[shares + local] = arena[shares + local] / total; }
}
