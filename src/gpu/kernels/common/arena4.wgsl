// All activations, as vec4: for kernels whose offsets, strides and counts are multiples of four.
@group(0) @binding(2) var<storage, read_write> arena4: array<vec4<f32>>;
