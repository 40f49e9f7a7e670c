// uses: params.draft common/pass_layout common/arena
// best: the id of the greatest logit, the lowest of equals, as a whole number in f32, and as draft number `draft` in the
// parameter block, where a pass that verifies drafts finds it.
// in0: [1][vocab]; in1: the ids of the logits, whole numbers in f32, if they are those of a list; out0: one value. One
// workgroup.
override LISTED: u32 = 0u; // 1: in1 has the ids
@group(0) @binding(1) var<storage, read_write> rows: array<u32>; // the parameter block, see common/pass

var<workgroup> high: array<f32, 256>;
var<workgroup> id_of: array<u32, 256>;

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) local: u32) {
    let z = params.in0;
    var top = -0x1.fffffep+127;
    var best = 0u;
    for (var v = local; v < params.vocab; v += 256u) {
        let x = arena[z + v]; // NaN is never greater
        var id = v;
        if (LISTED == 1u) { id = u32(arena[params.in1 + v]); }
        if (x > top || (x == top && id < best)) {
            top = x;
            best = id;
        }
    }
    high[local] = top;
    id_of[local] = best;
    workgroupBarrier();
    for (var half = 128u; half > 0u; half >>= 1u) {
        if (local < half) {
            let other = high[local + half];
            let id = id_of[local + half];
            if (other > high[local] || (other == high[local] && id < id_of[local])) {
                high[local] = other;
                id_of[local] = id;
            }
        }
        workgroupBarrier();
    }
    if (local == 0u) {
        arena[params.out0] = f32(id_of[0]);
        rows[DRAFTS + params.draft] = id_of[0];
    }
}
