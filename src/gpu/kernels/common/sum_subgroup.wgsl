// uses: common/subgroups
// Sums over a workgroup of 256 threads and over its groups of LANES threads, by subgroup operations. SUBGROUP is the
// smallest subgroup size of the device, at least LANES; of a larger subgroup, SUBGROUP threads are summed at a time.
override SUBGROUP: u32 = 8u;

fn sum_of(x: f32, threads: u32) -> f32 {
    var sum = x;
    for (var distance = threads / 2u; distance > 0u; distance >>= 1u) { sum += subgroupShuffleXor(sum, distance); }
    return sum;
}

fn workgroup_sum(x: f32, local: u32) -> f32 {
    let mine = sum_of(x, SUBGROUP);
    workgroupBarrier(); // the previous sum may still be read
    if (local % SUBGROUP == 0u) { shared_sum[local / SUBGROUP] = mine; }
    workgroupBarrier();
    var sum = 0.0;
    for (var i = 0u; i < 256u / SUBGROUP; i++) { sum += shared_sum[i]; }
    return sum;
}

// Valid in the first thread of each group.
fn lanes_sum(x: f32, local: u32) -> f32 { return sum_of(x, LANES); }
