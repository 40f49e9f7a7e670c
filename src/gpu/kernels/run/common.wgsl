// Weights for linear_short.wgsl, which takes a row 64 values at a time, a run: two threads fetch it, parts 0 and 1, and
// hand it out in four turns of sixteen values. Turn j of a run is its values 16v + 4j .. 16v + 4j + 3 of v = 0 .. 3, in
// which blocks of all types come apart without rests. run/TYPE.wgsl defines
//   FIRST            1: part p has v = p and p + 2; 2: v = 2p and 2p + 1;
//   Run              what a thread holds of a run;
//   fetch(at, s, p)  part p of run s of the row that begins at byte `at`;
//   turn(run, j)     the next turn, j: four values of the one v to wa, of the other to wb.
fn low_nibbles(w: u32) -> vec4<f32> { return vec4<f32>(unpack4xU8(w & 0x0f0f0f0fu)); }
fn high_nibbles(w: u32) -> vec4<f32> { return vec4<f32>(unpack4xU8((w >> 4u) & 0x0f0f0f0fu)); }
