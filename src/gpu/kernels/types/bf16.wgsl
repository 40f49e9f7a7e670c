// BF16: the upper 16 bits of an f32.

// section unpack, uses: types/read_bytes types/eight
fn two(w: u32) -> vec2<f32> { return bitcast<vec2<f32>>(vec2<u32>(w << 16u, w & 0xffff0000u)); }

fn unpack8(at: u32, u: u32) {
    let b = at + 16u * u;
    wa = vec4<f32>(two(u32_at(b)), two(u32_at(b + 4u)));
    wb = vec4<f32>(two(u32_at(b + 8u)), two(u32_at(b + 12u)));
}

// section aligned, uses: types/read_vec4 types/eight
// Rows of whole 16-byte vectors.
fn unpack8(at: u32, u: u32) {
    let q = weights[at / 16u + u];
    let low = bitcast<vec4<f32>>(q << vec4<u32>(16u));
    let high = bitcast<vec4<f32>>(q & vec4<u32>(0xffff0000u));
    wa = vec4<f32>(low.x, high.x, low.y, high.y);
    wb = vec4<f32>(low.z, high.z, low.w, high.w);
}
