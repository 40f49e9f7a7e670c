// Scales (x, y) and minima (z, w) of groups g and g + 1, g even, from the first vector of a Q4_K or Q5_K block.
fn k_scale_pair(head: vec4<u32>, g: u32) -> vec4<f32> {
    let shift = (g & 3u) * 8u;
    let a = head.y >> shift;
    let b = head.z >> shift;
    let c = head.w >> shift;
    let first = vec4<u32>(a, a >> 8u, b, b >> 8u) & vec4<u32>(63u);
    let later = (vec4<u32>(c, c >> 8u, c >> 4u, c >> 12u) & vec4<u32>(15u)) |
                ((vec4<u32>(a, a >> 8u, b, b >> 8u) >> vec4<u32>(2u)) & vec4<u32>(48u));
    return vec4<f32>(select(later, first, g < 4u));
}
