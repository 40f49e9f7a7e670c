// uses: common/f16
// Scale and minimum (f32 as bits) of group g of a Q4_K or Q5_K block, whose first vector is `head`.
fn k_scale_min(head: vec4<u32>, g: u32) -> vec2<u32> {
    let shift = (g & 3u) * 8u;
    let a = head.y >> shift;
    let b = head.z >> shift;
    let c = head.w >> shift;
    let s = select((c & 15u) | ((a >> 2u) & 48u), a & 63u, g < 4u);
    let m = select(((c >> 4u) & 15u) | ((b >> 2u) & 48u), b & 63u, g < 4u);
    return bitcast<vec2<u32>>(vec2<f32>(f32(s) * f16_value(head.x & 0xffffu), f32(m) * f16_value(head.x >> 16u)));
}
