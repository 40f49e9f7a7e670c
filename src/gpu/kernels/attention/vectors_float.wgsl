// The vectors of a cache in f16 or f32: CACHE_PER_VEC4 values, four at a time: 8 f16 in two halves, or 4 f32 in
// low_half alone. head_vectors() lie from one head to the next.
override CACHE_PER_VEC4: u32 = 8u; // values of a cache vector: 8 f16 or 4 f32
fn head_vectors() -> u32 { return VECTORS; }
fn is_rotated() -> bool { return false; }
alias Vector = vec4<u32>;

@group(0) @binding(3) var<storage, read> keys: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> values: array<vec4<u32>>;

fn key_vector(head: u32, i: u32) -> Vector { return keys[head + i]; }
fn value_vector(head: u32, i: u32) -> Vector { return values[head + i]; }

fn low_half(v: Vector) -> vec4<f32> {
    if (CACHE_PER_VEC4 == 8u) { return vec4<f32>(unpack2x16float(v.x), unpack2x16float(v.y)); }
    return bitcast<vec4<f32>>(v);
}

fn high_half(v: Vector) -> vec4<f32> { return vec4<f32>(unpack2x16float(v.z), unpack2x16float(v.w)); }
fn scale_of(v: Vector) -> f32 { return 1.0; }
fn in_chunk(v: Vector) -> vec4<u32> { return v; } // as the tiles hold keys
