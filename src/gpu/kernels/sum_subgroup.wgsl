// The sums of sum_plain.wgsl by subgroup operations. SUBGROUP is the least size a subgroup can have here, at least
// LANES; larger ones are used in parts.
override SUBGROUP: u32 = 8u;

fn sum_of(x: f32, threads: u32) -> f32 {
    var sum = x;
    for (var apart = threads / 2u; apart > 0u; apart >>= 1u) { sum += subgroupShuffleXor(sum, apart); }
    return sum;
}

fn workgroup_sum(x: f32, local: u32) -> f32 {
    let mine = sum_of(x, SUBGROUP);
    workgroupBarrier(); // whoever still reads the last sum
    if (local % SUBGROUP == 0u) { shared_sum[local / SUBGROUP] = mine; }
    workgroupBarrier();
    var sum = 0.0;
    for (var i = 0u; i < 256u / SUBGROUP; i++) { sum += shared_sum[i]; }
    return sum;
}

// Valid in the first thread of each group.
fn lanes_sum(x: f32, local: u32) -> f32 { return sum_of(x, LANES); }
