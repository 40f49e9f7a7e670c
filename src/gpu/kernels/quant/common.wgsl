// Weights as the file holds them. Blocks of some types are not a multiple of four bytes, so places
// are byte offsets. Each quant/TYPE.wgsl defines eight(at, u): values 8u .. 8u+7 of the row that begins
// at byte `at` go to wa and wb. Vectors, not an array, so that they stay in registers.
@group(0) @binding(3) var<storage, read> weights: array<u32>;

var<private> wa: vec4<f32>;
var<private> wb: vec4<f32>;

fn u8_at(at: u32) -> u32 { return (weights[at >> 2u] >> ((at & 3u) * 8u)) & 255u; }

// Of an even offset, which all two-byte fields have.
fn u16_at(at: u32) -> u32 { return (weights[at >> 2u] >> ((at & 2u) * 8u)) & 0xffffu; }

// Any byte offset. No branches here and below: several loads must be able to be under way at once.
fn u32_at(at: u32) -> u32 {
    let low = weights[at >> 2u];
    let high = weights[(at >> 2u) + 1u];
    let shift = (at & 3u) * 8u;
    return select((low >> shift) | (high << (32u - shift)), low, shift == 0u);
}

// A multiple of four.
fn word_at(at: u32) -> u32 { return weights[at >> 2u]; }

fn half_at(at: u32) -> f32 { return half(u16_at(at)); }

fn signed8(b: u32) -> f32 { return f32(i32(b << 24u) >> 24u); }

// The four bytes of a word, shifted and masked.
fn fields(w: u32, shift: u32, mask: u32) -> vec4<f32> {
    return vec4<f32>((vec4<u32>(w, w >> 8u, w >> 16u, w >> 24u) >> vec4<u32>(shift)) & vec4<u32>(mask));
}

// Four bits from bit `at` on, each worth `value`.
fn bits(w: u32, at: u32, value: f32) -> vec4<f32> {
    return vec4<f32>((vec4<u32>(w >> at) >> vec4<u32>(0u, 1u, 2u, 3u)) & vec4<u32>(1u)) * value;
}
