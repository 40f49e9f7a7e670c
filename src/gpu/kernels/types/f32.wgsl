// F32: 4 bytes per value.

// section unpack, uses: types/read_bytes types/eight
fn unpack8(at: u32, u: u32) {
    let b = at + 32u * u;
    wa = bitcast<vec4<f32>>(vec4<u32>(u32_at(b), u32_at(b + 4u), u32_at(b + 8u), u32_at(b + 12u)));
    wb = bitcast<vec4<f32>>(vec4<u32>(u32_at(b + 16u), u32_at(b + 20u), u32_at(b + 24u), u32_at(b + 28u)));
}

// section aligned, uses: types/read_vec4 types/eight
// Rows of whole 16-byte vectors.
fn unpack8(at: u32, u: u32) {
    wa = bitcast<vec4<f32>>(weights[at / 16u + 2u * u]);
    wb = bitcast<vec4<f32>>(weights[at / 16u + 2u * u + 1u]);
}
