// Blocks that are whole vectors of 16 bytes.
@group(0) @binding(3) var<storage, read> weights: array<vec4<u32>>;
