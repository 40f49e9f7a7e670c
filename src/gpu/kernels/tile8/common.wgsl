// Weights as integers for linear_tile8.wgsl. tile8/TYPE.wgsl defines, for steps of 64 values of a weight row:
//   PARTS       threads that unpack a step of one weight row together;
//   Raw, fetch(row, s, part)     what a part of step s of a weight row is made of, as it is loaded;
//   unpack(o, s, part, raw)      puts it into output o of the tile;
//   HAS_MIN     a group of 32 is scale * q - minimum;
//   TWO_SCALES  the halves of a group have whole-numbered scales of their own, under one common scale.
var<workgroup> w_tile: array<vec4<u32>, OUTS * 4u>;  // 16 integers each: [output][4]
var<workgroup> w_scale: array<vec2<u32>, OUTS * 2u>; // scale (as bits) and minimum (as bits) or two scales: [output][2]

// Vector c of an output lies where eight neighbouring outputs do not meet in the same banks.
fn put16(o: u32, c: u32, q: vec4<u32>) { w_tile[o * 4u + (c ^ ((o >> 1u) & 3u))] = q; }
