// The rotation of keys, values and queries with a cache in Q4 (plan/cache.h): within each block of 32 values of a head,
// the product with a Hadamard matrix, divided by the root of its size. A shorter last block consists of several such
// groups, whose size is the largest power of two that divides its length. In stages of sums and differences of pairs,
// in the same order as on the CPU: the results have the same bits, and are rounded to the same integers.
const ROTATION_STAGES = 5u;

fn rotation_size(i: u32, width: u32) -> u32 { // of the group that value i is in
    let length = min(32u, width - (i & ~31u));
    return length & (~length + 1u);
}

// 1 / sqrt(size)
fn rotation_scale(size: u32) -> f32 {
    switch (size) {
        case 32u: { return 0.17677669; }
        case 16u: { return 0.25; }
        case 8u: { return 0.35355338; }
        case 4u: { return 0.5; }
        case 2u: { return 0.70710677; }
        default: { return 1.0; }
    }
}

// The partner of value i in a stage; i itself after the last stage of its group.
fn rotation_partner(i: u32, stage: u32, width: u32) -> u32 {
    return select(i, i ^ (1u << stage), (1u << stage) < rotation_size(i, width));
}

fn rotated_pair(own: f32, other: f32, i: u32, stage: u32) -> f32 {
    return select(own + other, other - own, ((i >> stage) & 1u) == 1u);
}
