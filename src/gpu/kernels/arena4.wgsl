// All activations, four at a time: only where places, strides and counts are multiples of four.
@group(0) @binding(2) var<storage, read_write> arena4: array<vec4<f32>>;
