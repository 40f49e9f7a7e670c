fn two(w: u32) -> vec2<f32> { return vec2<f32>(half(w & 0xffffu), half(w >> 16u)); }

fn eight(at: u32, u: u32) {
    let q = weights[at / 16u + u];
    wa = vec4<f32>(two(q.x), two(q.y));
    wb = vec4<f32>(two(q.z), two(q.w));
}
