// Weights as the file holds them. Blocks of some types are not a multiple of four bytes, so places
// are byte offsets. Each quant/TYPE.wgsl defines unpack(at, g): the 32 values of group g of the row
// that begins at byte `at` go to v.
@group(0) @binding(3) var<storage, read> weights: array<u32>;

var<private> v: array<f32, 32>;

fn u8_at(at: u32) -> u32 { return (weights[at >> 2u] >> ((at & 3u) * 8u)) & 255u; }

fn u16_at(at: u32) -> u32 {
    return u8_at(at) | (u8_at(at + 1u) << 8u);
}

fn u32_at(at: u32) -> u32 {
    let low = weights[at >> 2u];
    let shift = (at & 3u) * 8u;
    if (shift == 0u) { return low; }
    return (low >> shift) | (weights[(at >> 2u) + 1u] << (32u - shift));
}

// By bits: the built-in conversions may flush the small numbers that scales often are.
fn half(h: u32) -> f32 {
    let sign = (h & 0x8000u) << 16u;
    let magnitude = h & 0x7fffu;
    if (magnitude >= 0x7c00u) { return bitcast<f32>(sign | 0x7f800000u | ((h & 0x3ffu) << 13u)); }
    let normal = bitcast<f32>((magnitude << 13u) + 0x38000000u);
    let small = f32(magnitude) * 5.9604644775390625e-8;
    let value = select(normal, small, magnitude < 0x400u);
    return select(value, -value, sign != 0u);
}

fn half_at(at: u32) -> f32 { return half(u16_at(at)); }

fn signed8(b: u32) -> f32 { return f32(i32(b << 24u) >> 24u); }
