// F16: 2 bytes per value.

// section unpack, uses: types/read_bytes types/eight
fn two(w: u32) -> vec2<f32> { return vec2<f32>(f16_value(w & 0xffffu), f16_value(w >> 16u)); }

fn unpack8(at: u32, u: u32) {
    let b = at + 16u * u;
    wa = vec4<f32>(two(u32_at(b)), two(u32_at(b + 4u)));
    wb = vec4<f32>(two(u32_at(b + 8u)), two(u32_at(b + 12u)));
}

// section aligned, uses: types/read_vec4 types/eight
// Rows of whole 16-byte vectors.
fn two(w: u32) -> vec2<f32> { return vec2<f32>(f16_value(w & 0xffffu), f16_value(w >> 16u)); }

fn unpack8(at: u32, u: u32) {
    let q = weights[at / 16u + u];
    wa = vec4<f32>(two(q.x), two(q.y));
    wb = vec4<f32>(two(q.z), two(q.w));
}
