// uses: types/eight
// Weights for linear_short and soft_gather, which take a row in runs of 64 values: two threads load a run, parts 0 and
// 1, and unpack it in four quarters. Quarter j of a run is its values 16v + 4j .. 16v + 4j + 3 of v = 0 .. 3: blocks of
// all types divide evenly that way. type.run defines
//   FIRST_V                 1: part p has v = p and p + 2; 2: v = 2p and 2p + 1
//   Run                     what a thread holds of a run
//   fetch(at, s, p)         part p of run s of the row that begins at byte `at`
//   unpack_quarter(run, j)  quarter j, in order: four values of the one v to wa, of the other to wb
fn low_nibbles(w: u32) -> vec4<f32> { return vec4<f32>(unpack4xU8(w & 0x0f0f0f0fu)); }
fn high_nibbles(w: u32) -> vec4<f32> { return vec4<f32>(unpack4xU8((w >> 4u) & 0x0f0f0f0fu)); }
