// All activations, value by value.
@group(0) @binding(2) var<storage, read_write> arena: array<f32>;
