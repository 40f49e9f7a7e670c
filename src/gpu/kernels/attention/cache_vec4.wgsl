// The CACHE_PER_VEC4 values of a cache vector, four at a time: 8 f16 in two halves, or 4 f32 in low_half alone.
fn low_half(v: vec4<u32>) -> vec4<f32> {
    if (CACHE_PER_VEC4 == 8u) { return vec4<f32>(unpack2x16float(v.x), unpack2x16float(v.y)); }
    return bitcast<vec4<f32>>(v);
}

fn high_half(v: vec4<u32>) -> vec4<f32> { return vec4<f32>(unpack2x16float(v.z), unpack2x16float(v.w)); }
