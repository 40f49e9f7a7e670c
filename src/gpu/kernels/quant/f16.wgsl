// F16
fn two(w: u32) -> vec2<f32> { return vec2<f32>(half(w & 0xffffu), half(w >> 16u)); }

fn eight(at: u32, u: u32) {
    let b = at + 16u * u;
    wa = vec4<f32>(two(u32_at(b)), two(u32_at(b + 4u)));
    wb = vec4<f32>(two(u32_at(b + 8u)), two(u32_at(b + 12u)));
}
