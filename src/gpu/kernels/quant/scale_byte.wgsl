// Scale i of a Q6_K block, whose sixteen int8 scales are the vector s.
fn scale_byte(s: vec4<u32>, i: u32) -> f32 {
    let w = select(select(s.x, s.y, (i & 4u) != 0u), select(s.z, s.w, (i & 4u) != 0u), (i & 8u) != 0u);
    return f32(i32(w << (24u - 8u * (i & 3u))) >> 24u);
}
