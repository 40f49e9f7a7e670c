// uses: common/arena types/eight
// The eight unpacked weights times eight activations from arena index `x` on; the first `left` of them count.
fn dot8(x: u32, left: u32) -> f32 {
    if (left >= 8u) {
        return dot(wa, vec4<f32>(arena[x], arena[x + 1u], arena[x + 2u], arena[x + 3u])) +
               dot(wb, vec4<f32>(arena[x + 4u], arena[x + 5u], arena[x + 6u], arena[x + 7u]));
    }
    var sum = 0.0;
    for (var i = 0u; i < left; i++) { sum += select(wb, wa, i < 4u)[i & 3u] * arena[x + i]; }
    return sum;
}
