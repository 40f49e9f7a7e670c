// The vectors of a cache in Q8: 8 integers in two words, in a head VECTORS of them; then the head's scales, one for 32
// values, four in a vector (lower/lower.h).
const CACHE_PER_VEC4 = 8u;
fn head_vectors() -> u32 { return VECTORS + (VECTORS + 15u) / 16u; }
fn is_rotated() -> bool { return false; }

struct Vector { q: vec2<u32>, scale: f32 }

@group(0) @binding(3) var<storage, read> keys: array<vec2<u32>>;
@group(0) @binding(4) var<storage, read> values: array<vec2<u32>>;

// Scale number `block` of the head, in the vector that has it.
fn block_scale(scales: vec2<u32>, block: u32) -> f32 {
    let two = unpack2x16float(select(scales.x, scales.y, (block & 2u) != 0u));
    return select(two.x, two.y, (block & 1u) != 0u);
}

fn key_vector(head: u32, i: u32) -> Vector {
    return Vector(keys[head + i], block_scale(keys[head + VECTORS + i / 16u], i / 4u));
}

fn value_vector(head: u32, i: u32) -> Vector {
    return Vector(values[head + i], block_scale(values[head + VECTORS + i / 16u], i / 4u));
}

fn low_half(v: Vector) -> vec4<f32> { return vec4<f32>(unpack4xI8(v.q.x)); }
fn high_half(v: Vector) -> vec4<f32> { return vec4<f32>(unpack4xI8(v.q.y)); }
fn scale_of(v: Vector) -> f32 { return v.scale; }

// As the tiles hold keys: f16.
fn in_chunk(v: Vector) -> vec4<u32> {
    let a = v.scale * low_half(v);
    let b = v.scale * high_half(v);
    return vec4<u32>(pack2x16float(a.xy), pack2x16float(a.zw), pack2x16float(b.xy), pack2x16float(b.zw));
}
