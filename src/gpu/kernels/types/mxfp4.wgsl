// MXFP4: 32 values in 17 bytes; an E8M0 scale and E2M1 values (the table holds them doubled).

// section scale
// Half of the scale, which may be subnormal.
fn half_scale(e: u32) -> f32 { return bitcast<f32>(select((e - 1u) << 23u, 0x00200000u << e, e < 2u)); }

// section unpack, uses: types/read_bytes types/eight type.scale
const E2M1 = array<f32, 16>(0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 0.0, -1.0, -2.0, -3.0, -4.0, -6.0, -8.0, -12.0);

fn e2m1(w: u32, shift: u32) -> vec4<f32> {
    var table = E2M1;
    let q = (vec4<u32>(w, w >> 8u, w >> 16u, w >> 24u) >> vec4<u32>(shift)) & vec4<u32>(15u);
    return vec4<f32>(table[q.x], table[q.y], table[q.z], table[q.w]);
}

fn unpack8(at: u32, u: u32) {
    let b = at + 17u * (u >> 2u);
    let d = half_scale(u8_at(b));
    let q = b + 1u + 8u * (u & 1u);
    wa = d * e2m1(u32_at(q), 2u * (u & 2u));
    wb = d * e2m1(u32_at(q + 4u), 2u * (u & 2u));
}

// section block, uses: type.scale
// A block begins at any byte and lies in five words.
struct Block { at: u32, a: vec4<u32>, last: u32 }

fn fetch_block(at: u32) -> Block {
    let i = at >> 2u;
    return Block(at, vec4<u32>(weights[i], weights[i + 1u], weights[i + 2u], weights[i + 3u]), weights[i + 4u]);
}

fn scale_of_block(b: Block) -> f32 { return half_scale((b.a.x >> ((b.at & 3u) * 8u)) & 255u); }

// The 16 bytes after the scale.
fn nibbles_of(b: Block) -> vec4<u32> {
    let shift = (b.at & 3u) * 8u + 8u; // 8 .. 32
    let next = vec4<u32>(b.a.yzw, b.last);
    return select((b.a >> vec4<u32>(shift & 31u)) | (next << vec4<u32>(32u - shift)), next, shift == 32u);
}

// The doubled values as int8; the lower four bits of each byte select one. Magnitudes 0 .. 7 stand for 0, 1, 2, 3, 4, 6,
// 8, 12.
fn e2m1_bytes(q: vec4<u32>) -> vec4<u32> {
    let one = vec4<u32>(0x01010101u);
    let b = (q >> vec4<u32>(1u)) & one;
    let c = (q >> vec4<u32>(2u)) & one;
    let ac = q & c;
    let magnitude = (q & vec4<u32>(0x07070707u)) + ac + (b & c) * 2u + (ac & b) * 2u;
    let negative = ((q >> vec4<u32>(3u)) & one) * 255u;
    let bias = vec4<u32>(0x80808080u);
    return (bias + (magnitude & ~negative) - (magnitude & negative)) ^ bias;
}

// section dot, uses: product/dot_blocks types/read_words type.block
const AHEAD = 3u;

struct Unit { block: Block }

fn fetch_unit(row: u32, u: u32) -> Unit { return Unit(fetch_block(row + 17u * u)); }

fn dot_unit(unit: Unit, u: u32) -> f32 {
    let q = nibbles_of(unit.block);
    let l = dot16(e2m1_bytes(q), x_low) * s_low.x;
    let h = dot16(e2m1_bytes(q >> vec4<u32>(4u)), x_high) * s_high.x;
    return scale_of_block(unit.block) * (l + h);
}

// section tile, uses: product/tile8_weights types/read_words type.block
const PARTS = 2u;
const HAS_MIN = false;
const TWO_SCALES = false;

struct Raw { block: Block }

fn fetch(row: u32, s: u32, part: u32) -> Raw {
    let b = 2u * s + part;
    return Raw(fetch_block(row * params.row_bytes + 17u * select(0u, b, b * 32u < params.k))); // the last step may have one block only
}

fn unpack(o: u32, s: u32, part: u32, raw: Raw) {
    let q = nibbles_of(raw.block);
    store16(o, 2u * part, e2m1_bytes(q));
    store16(o, 2u * part + 1u, e2m1_bytes(q >> vec4<u32>(4u)));
    let here = (2u * s + part) * 32u < params.k;
    w_scale[o * 2u + part] = vec2<u32>(bitcast<u32>(select(0.0, scale_of_block(raw.block), here)), 0u);
}
