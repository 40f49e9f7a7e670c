// IQ4_XS: 256 values in 136 bytes; f16 scale, 6-bit scales of 8 groups of 32 (the two high bits apart), nibbles, which
// index a table.

// section unpack, uses: types/read_bytes types/eight types/iq4_table
fn unpack8(at: u32, u: u32) {
    let b = at + 136u * (u >> 5u);
    let g = (u >> 2u) & 7u;
    let low = (u8_at(b + 4u + (g >> 1u)) >> (4u * (g & 1u))) & 15u;
    let high = (u16_at(b + 2u) >> (2u * g)) & 3u;
    let d = f16_at(b) * (f32(low | (high << 4u)) - 32.0);
    let q = b + 8u + 16u * g + 8u * (u & 1u);
    wa = d * iq4(u32_at(q), 2u * (u & 2u));
    wb = d * iq4(u32_at(q + 4u), 2u * (u & 2u));
}

// section group
// Vector of nibbles of a group of 32, which begin at a multiple of four bytes.
fn nibbles_at(at: u32) -> vec4<u32> {
    let i = at >> 2u;
    return vec4<u32>(weights[i], weights[i + 1u], weights[i + 2u], weights[i + 3u]);
}

// Scale of group g; `head` are the first two words of the block.
fn group_scale(head: vec2<u32>, g: u32) -> f32 {
    let scale = ((head.y >> (4u * g)) & 15u) | (((head.x >> (16u + 2u * g)) & 3u) << 4u);
    return f16_value(head.x & 0xffffu) * (f32(scale) - 32.0);
}

// section dot, uses: product/dot_blocks types/read_words types/iq4_bytes type.group
// A unit is a group.
const AHEAD = 3u;

struct Unit { head: vec2<u32>, q: vec4<u32> }

fn fetch_unit(row: u32, u: u32) -> Unit {
    let at = row + 136u * (u >> 3u);
    return Unit(vec2<u32>(weights[at >> 2u], weights[(at >> 2u) + 1u]), nibbles_at(at + 8u + 16u * (u & 7u)));
}

fn dot_unit(unit: Unit, u: u32) -> f32 {
    let l = dot16(iq4_bytes(unit.q), x_low) * s_low.x;
    let h = dot16(iq4_bytes(unit.q >> vec4<u32>(4u)), x_high) * s_high.x;
    return group_scale(unit.head, u & 7u) * (l + h);
}

// section tile, uses: product/tile8_weights types/read_words types/iq4_bytes type.group
const PARTS = 2u;
const HAS_MIN = false;
const TWO_SCALES = false;

struct Raw { head: vec2<u32>, q: vec4<u32> }

fn fetch(row: u32, s: u32, part: u32) -> Raw {
    let at = row * params.row_bytes + 136u * (s >> 2u);
    return Raw(vec2<u32>(weights[at >> 2u], weights[(at >> 2u) + 1u]), nibbles_at(at + 8u + 16u * (2u * (s & 3u) + part)));
}

fn unpack(o: u32, s: u32, part: u32, raw: Raw) {
    store16(o, 2u * part, iq4_bytes(raw.q));
    store16(o, 2u * part + 1u, iq4_bytes(raw.q >> vec4<u32>(4u)));
    w_scale[o * 2u + part] = vec2<u32>(bitcast<u32>(group_scale(raw.head, 2u * (s & 3u) + part)), 0u);
}
