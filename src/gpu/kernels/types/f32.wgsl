// F32: 4 bytes per value.

// section unpack, uses: types/read_bytes types/eight
fn unpack8(at: u32, u: u32) {
    let b = at + 32u * u;
    wa = bitcast<vec4<f32>>(vec4<u32>(u32_at(b), u32_at(b + 4u), u32_at(b + 8u), u32_at(b + 12u)));
    wb = bitcast<vec4<f32>>(vec4<u32>(u32_at(b + 16u), u32_at(b + 20u), u32_at(b + 24u), u32_at(b + 28u)));
}

// section aligned, uses: types/read_vec4 types/eight
// Rows of whole 16-byte vectors.
fn unpack8(at: u32, u: u32) {
    wa = bitcast<vec4<f32>>(weights[at / 16u + 2u * u]);
    wb = bitcast<vec4<f32>>(weights[at / 16u + 2u * u + 1u]);
}

// section dot, uses: product/dot types/read_vec4
// For the first halves of adapters, whose input is int8 as for the products beside them. A unit is 32 values.
const AHEAD = 1u;

struct Unit { a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>, e: vec4<f32>, f: vec4<f32>, g: vec4<f32>, h: vec4<f32> }

fn row_at(matrix: u32, n: u32) -> u32 { return matrix + n * (K / 4u); }
fn low_index(u: u32) -> u32 { return 2u * u; }
fn high_index(u: u32) -> u32 { return 2u * u + 1u; }

fn four_at(i: u32) -> vec4<f32> { return bitcast<vec4<f32>>(weights[i]); }

fn fetch_unit(row: u32, u: u32) -> Unit {
    let i = row + 8u * u;
    return Unit(four_at(i), four_at(i + 1u), four_at(i + 2u), four_at(i + 3u), four_at(i + 4u), four_at(i + 5u), four_at(i + 6u), four_at(i + 7u));
}

fn dot_four(w: vec4<f32>, x: u32) -> f32 { return dot(w, vec4<f32>(unpack4xI8(x))); }

fn dot_unit(unit: Unit, u: u32) -> f32 {
    let l = dot_four(unit.a, x_low.x) + dot_four(unit.b, x_low.y) + dot_four(unit.c, x_low.z) + dot_four(unit.d, x_low.w);
    let h = dot_four(unit.e, x_high.x) + dot_four(unit.f, x_high.y) + dot_four(unit.g, x_high.z) + dot_four(unit.h, x_high.w);
    return l * s_low.x + h * s_high.x;
}
