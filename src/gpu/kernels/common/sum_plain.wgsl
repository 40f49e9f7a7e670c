// Sums over a workgroup of 256 threads and over its groups of LANES threads, in workgroup memory (the kernel's
// shared_sum).
fn workgroup_sum(x: f32, local: u32) -> f32 {
    workgroupBarrier(); // the previous sum may still be read
    shared_sum[local] = x;
    workgroupBarrier();
    for (var half = 128u; half > 0u; half >>= 1u) {
        if (local < half) { shared_sum[local] += shared_sum[local + half]; }
        workgroupBarrier();
    }
    return shared_sum[0];
}

// Valid in the first thread of each group.
fn lanes_sum(x: f32, local: u32) -> f32 {
    workgroupBarrier();
    shared_sum[local] = x;
    workgroupBarrier();
    for (var half = LANES / 2u; half > 0u; half >>= 1u) {
        if (local % LANES < half) { shared_sum[local] += shared_sum[local + half]; }
        workgroupBarrier();
    }
    return shared_sum[local];
}
