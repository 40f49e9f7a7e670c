// Sums over a workgroup of 256 threads and over its groups of LANES threads, through workgroup memory.
fn workgroup_sum(x: f32, local: u32) -> f32 {
    workgroupBarrier(); // whoever still reads the last sum
    shared_sum[local] = x;
    workgroupBarrier();
    for (var half_way = 128u; half_way > 0u; half_way >>= 1u) {
        if (local < half_way) { shared_sum[local] += shared_sum[local + half_way]; }
        workgroupBarrier();
    }
    return shared_sum[0];
}

// Valid in the first thread of each group.
fn lanes_sum(x: f32, local: u32) -> f32 {
    workgroupBarrier();
    shared_sum[local] = x;
    workgroupBarrier();
    for (var half_way = LANES / 2u; half_way > 0u; half_way >>= 1u) {
        if (local % LANES < half_way) { shared_sum[local] += shared_sum[local + half_way]; }
        workgroupBarrier();
    }
    return shared_sum[local];
}
