// uses: params.draft common/pass common/fold common/arena
// top: the numbers of the greatest values of a row, in order; of equal ones the first comes first.
// in0: [rows][vocab] -> out0: [rows][cols], whole numbers in f32.
//
// One thread per value. Its rank is the number of values that precede it: all threads count at once, and none waits
// for the greatest to be found before the next.
const THREADS = 64u;

var<workgroup> keys: array<u32, THREADS>;

// Increases with x, and orders NaN too; the same for both zeros.
fn key_of(x: f32) -> u32 {
    let bits = bitcast<u32>(select(x, 0.0, x == 0.0));
    return select(bits | 0x80000000u, ~bits, bits >= 0x80000000u);
}

@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>) {
    let row = group.z;
    if (row >= live_rows()) { return; }
    let x = params.in0 + row * params.in0_stride;
    let own = folded(group, groups) * THREADS + local;
    let key = key_of(arena[x + min(own, params.vocab - 1u)]);
    var rank = 0u;
    for (var first = 0u; first < params.vocab; first += THREADS) {
        keys[local] = key_of(arena[x + min(first + local, params.vocab - 1u)]);
        workgroupBarrier();
        for (var i = 0u; i < min(THREADS, params.vocab - first); i++) {
            rank += select(0u, 1u, keys[i] > key || (keys[i] == key && first + i < own));
        }
        workgroupBarrier();
    }
    if (own < params.vocab && rank < params.cols) {
        arena[params.out0 + row * params.out0_stride + rank] = f32(own);
    }
}
