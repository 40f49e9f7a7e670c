// BF16: the upper half of an f32
fn two(w: u32) -> vec2<f32> { return bitcast<vec2<f32>>(vec2<u32>(w << 16u, w & 0xffff0000u)); }

fn eight(at: u32, u: u32) {
    let b = at + 16u * u;
    wa = vec4<f32>(two(u32_at(b)), two(u32_at(b + 4u)));
    wb = vec4<f32>(two(u32_at(b + 8u)), two(u32_at(b + 12u)));
}
