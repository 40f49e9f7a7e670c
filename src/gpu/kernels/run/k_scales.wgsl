// The 6-bit scales (x, y) and minima (z, w) of groups 2i and 2i + 1 of a Q4_K or Q5_K block, from its first vector.
fn two_scales(head: vec4<u32>, i: u32) -> vec4<u32> {
    let shift = vec2<u32>(0u, 8u) + 16u * (i & 1u);
    let a = vec4<u32>(head.yy >> shift, head.zz >> shift);
    let c = vec4<u32>(head.ww >> shift, head.ww >> (shift + vec2<u32>(4u)));
    return select((c & vec4<u32>(15u)) | ((a >> vec4<u32>(2u)) & vec4<u32>(48u)), a & vec4<u32>(63u), i < 2u);
}
