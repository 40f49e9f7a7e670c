// All activations, as scalars.
@group(0) @binding(2) var<storage, read_write> arena: array<f32>;
