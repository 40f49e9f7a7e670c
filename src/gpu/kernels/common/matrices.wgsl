// Subgroup matrices: 16 by 16, factors f16, sums f32, for subgroups of 32. Control flow depends on the subgroup's index
// in its workgroup, which is uniform in a subgroup; the compiler cannot know that, so its check is off.
diagnostic(off, chromium.subgroup_matrix_uniformity);
enable f16;
enable subgroups;
enable chromium_experimental_subgroup_matrix;

alias Left = subgroup_matrix_left<f16, 16, 16>;
alias Right = subgroup_matrix_right<f16, 16, 16>;
alias Sums = subgroup_matrix_result<f32, 16, 16>;

// A slab (product/to_f16) in workgroup memory: 32 rows of 16 f16, padded so that rows do not share banks. An index that
// is a thread's number times a constant, plus constants, needs no bounds check; a matrix then begins at a constant of
// its slab.
const PITCH = 24u;
const LOWER = 384u; // first of the second 16 rows
const SLAB = 768u;

fn f16x4(bits: vec2<u32>) -> vec4<f16> { return bitcast<vec4<f16>>(bits); }
