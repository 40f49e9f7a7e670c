// uses: common/f16
// Weights as the file holds them, read at any byte offset: blocks of some types are not a multiple of four bytes.
@group(0) @binding(3) var<storage, read> weights: array<u32>;

fn u8_at(at: u32) -> u32 { return (weights[at >> 2u] >> ((at & 3u) * 8u)) & 255u; }

// At an even offset, which all two-byte fields have.
fn u16_at(at: u32) -> u32 { return (weights[at >> 2u] >> ((at & 2u) * 8u)) & 0xffffu; }

// At any offset. No branches here and below, so that several loads can be in flight.
fn u32_at(at: u32) -> u32 {
    let low = weights[at >> 2u];
    let high = weights[(at >> 2u) + 1u];
    let shift = (at & 3u) * 8u;
    return select((low >> shift) | (high << (32u - shift)), low, shift == 0u);
}

// At a multiple of four.
fn word_at(at: u32) -> u32 { return weights[at >> 2u]; }

fn f16_at(at: u32) -> f32 { return f16_value(u16_at(at)); }

fn signed8(b: u32) -> f32 { return f32(i32(b << 24u) >> 24u); }

// The four bytes of a word, shifted and masked.
fn fields(w: u32, shift: u32, mask: u32) -> vec4<f32> {
    return vec4<f32>((vec4<u32>(w, w >> 8u, w >> 16u, w >> 24u) >> vec4<u32>(shift)) & vec4<u32>(mask));
}

// Four bits from bit `at` on, each times `value`.
fn bits(w: u32, at: u32, value: f32) -> vec4<f32> {
    return vec4<f32>((vec4<u32>(w >> at) >> vec4<u32>(0u, 1u, 2u, 3u)) & vec4<u32>(1u)) * value;
}
