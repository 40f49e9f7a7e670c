// uses: common/subgroups
// Sums over a workgroup of THREADS threads and over groups of neighboring threads, by subgroup operations. SUBGROUP is the
// smallest subgroup size of the device, at least 4; of a larger subgroup, SUBGROUP threads are summed at a time.
override SUBGROUP: u32 = 8u;

fn sum_of(x: f32, threads: u32) -> f32 {
    var sum = x;
    for (var distance = threads / 2u; distance > 0u; distance >>= 1u) { sum += subgroupShuffleXor(sum, distance); }
    return sum;
}

// `slot` 0 or 1: successive sums use different ones, since the previous sum may still be read.
fn workgroup_sum(slot: u32, x: f32, local: u32) -> f32 {
    let mine = sum_of(x, SUBGROUP);
    if (local % SUBGROUP == 0u) { shared_sum[slot * 64u + local / SUBGROUP] = mine; }
    workgroupBarrier();
    var sum = 0.0;
    for (var i = 0u; i < THREADS / SUBGROUP; i++) { sum += shared_sum[slot * 64u + i]; }
    return sum;
}

// Lanes that lanes_sum adds up; the sum is valid in the first of them.
fn summed_lanes() -> u32 { return min(LANES, SUBGROUP); }
fn lanes_sum(x: f32, local: u32) -> f32 { return sum_of(x, summed_lanes()); }

// Over 2 or 4 neighboring threads, for each of them.
fn near_sum(x: f32, threads: u32, local: u32) -> f32 { return sum_of(x, threads); }
fn near_max(x: f32, threads: u32, local: u32) -> f32 {
    var highest = x;
    for (var distance = threads / 2u; distance > 0u; distance >>= 1u) { highest = max(highest, subgroupShuffleXor(highest, distance)); }
    return highest;
}
