// Kernels on subgroup matrices: 16 by 16, factors in f16, sums in f32, for subgroups of 32. What follows depends on which
// subgroup of a workgroup it is; the compiler cannot know that this is the same for all of a subgroup.
diagnostic(off, chromium.subgroup_matrix_uniformity);
enable f16;
enable subgroups;
enable chromium_experimental_subgroup_matrix;

alias Left = subgroup_matrix_left<f16, 16, 16>;
alias Right = subgroup_matrix_right<f16, 16, 16>;
alias Sums = subgroup_matrix_result<f32, 16, 16>;

// Halves of a slab (halves.wgsl) in workgroup memory: 32 rows of 16, padded so that rows do not meet in the same banks. A
// place that is a thread's number times a constant, plus constants, costs no check of bounds; a matrix then begins
// at a constant of its slab.
const PITCH = 24u;
const LOWER = 384u; // where the second 16 rows begin
const SLAB = 768u;

fn four(bits: vec2<u32>) -> vec4<f16> { return bitcast<vec4<f16>>(bits); }
