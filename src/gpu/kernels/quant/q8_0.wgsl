// Q8_0: 32 values in 34 bytes; f16 scale, int8 each
fn eight(at: u32, u: u32) {
    let b = at + 34u * (u >> 2u);
    let d = half_at(b);
    let q = b + 2u + 8u * (u & 3u);
    wa = d * vec4<f32>(unpack4xI8(u32_at(q)));
    wb = d * vec4<f32>(unpack4xI8(u32_at(q + 4u)));
}
