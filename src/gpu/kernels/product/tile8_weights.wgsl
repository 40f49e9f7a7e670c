// uses: params.product
// Weights as int8 for linear_tile8, in steps of 64 values of a weight row. type.tile defines
//   PARTS       threads that unpack a step of one weight row together
//   Raw, fetch(row, s, part)     part `part` of step s of a weight row, as loaded
//   unpack(o, s, part, raw)      stores it as output o of the tile
//   HAS_MIN     a group of 32 is scale * q - minimum
//   TWO_SCALES  the halves of a group have integer scales of their own under one common scale
var<workgroup> w_tile: array<vec4<u32>, OUTS * 4u>;  // [output][4], 16 integers per vector
var<workgroup> w_scale: array<vec2<u32>, OUTS * 2u>; // [output][2]: scale and minimum as bits, or scale and two integer scales

// Vector c of output o, swizzled so that eight neighboring outputs do not share banks.
fn store16(o: u32, c: u32, q: vec4<u32>) { w_tile[o * 4u + (c ^ ((o >> 1u) & 3u))] = q; }
