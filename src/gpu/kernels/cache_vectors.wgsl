// The values in a vector of the cache, four at a time: PER of them, 8 f16 or 4 f32, whose high half is used of 8 alone.
fn low(v: vec4<u32>) -> vec4<f32> {
    if (PER == 8u) { return vec4<f32>(unpack2x16float(v.x), unpack2x16float(v.y)); }
    return bitcast<vec4<f32>>(v);
}

fn high(v: vec4<u32>) -> vec4<f32> { return vec4<f32>(unpack2x16float(v.z), unpack2x16float(v.w)); }
