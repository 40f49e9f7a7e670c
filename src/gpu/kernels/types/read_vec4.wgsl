// uses: common/f16
// Weights in blocks of whole 16-byte vectors.
@group(0) @binding(3) var<storage, read> weights: array<vec4<u32>>;
