// uses: attention/rotation
// Rotates the query that a workgroup of 256 threads holds in `query`, up to 1024 values.
fn rotate_query(local: u32, width: u32) {
    var own: array<f32, 4>;
    for (var stage = 0u; stage < ROTATION_STAGES; stage++) {
        for (var t = 0u; t < 4u; t++) {
            let i = local + t * 256u;
            let partner = rotation_partner(min(i, width - 1u), stage, width);
            if (i < width) { own[t] = select(rotated_pair(query[i], query[partner], i, stage), query[i], partner == i); }
        }
        workgroupBarrier();
        for (var t = 0u; t < 4u; t++) {
            if (local + t * 256u < width) { query[local + t * 256u] = own[t]; }
        }
        workgroupBarrier();
    }
    for (var i = local; i < width; i += 256u) { query[i] *= rotation_scale(rotation_size(i, width)); }
    workgroupBarrier();
}
