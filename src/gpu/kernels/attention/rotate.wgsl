// uses: params.attention common/pass attention/rotate_query common/arena
// rotate: rotates heads in place, as a cache in Q4 is. in0: [rows][heads][width].
//
// One workgroup per row and head.
var<workgroup> query: array<f32, 1024>;

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    if (group.y >= live_rows()) { return; }
    let d = params.width;
    let x = params.in0 + group.y * params.in0_stride + group.x * d;
    for (var i = local; i < d; i += 256u) { query[i] = arena[x + i]; }
    workgroupBarrier();
    rotate_query(local, d);
    for (var i = local; i < d; i += 256u) { arena[x + i] = query[i]; }
}
