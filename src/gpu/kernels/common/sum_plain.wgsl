// Sums over a workgroup of THREADS threads and over groups of neighboring threads, in workgroup memory (the kernel's
// shared_sum).
fn share(x: f32, local: u32) {
    workgroupBarrier(); // the previous values may still be read
    shared_sum[local] = x;
    workgroupBarrier();
}

fn workgroup_sum(slot: u32, x: f32, local: u32) -> f32 {
    share(x, local);
    for (var half = THREADS / 2u; half > 0u; half >>= 1u) {
        if (local < half) { shared_sum[local] += shared_sum[local + half]; }
        workgroupBarrier();
    }
    return shared_sum[0];
}

// Lanes that lanes_sum adds up; the sum is valid in the first of them.
fn summed_lanes() -> u32 { return LANES; }
fn lanes_sum(x: f32, local: u32) -> f32 {
    share(x, local);
    for (var half = LANES / 2u; half > 0u; half >>= 1u) {
        if (local % LANES < half) { shared_sum[local] += shared_sum[local + half]; }
        workgroupBarrier();
    }
    return shared_sum[local];
}

// Over 2 or 4 neighboring threads, for each of them.
fn near_sum(x: f32, threads: u32, local: u32) -> f32 {
    share(x, local);
    let first = local & ~(threads - 1u);
    var sum = shared_sum[first];
    for (var i = 1u; i < threads; i++) { sum += shared_sum[first + i]; }
    return sum;
}
fn near_max(x: f32, threads: u32, local: u32) -> f32 {
    share(x, local);
    let first = local & ~(threads - 1u);
    var highest = shared_sum[first];
    for (var i = 1u; i < threads; i++) { highest = max(highest, shared_sum[first + i]); }
    return highest;
}
