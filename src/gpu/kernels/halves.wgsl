// Rows as f16, for kernels on matrices (matrices.wgsl): in slabs of 32 rows by 16 values, [row / 32][value / 16], a slab
// being [value / 8][row][8 values] so that a subgroup reads 512 bytes at once. Rows behind the last one are zeros.
@group(0) @binding(3) var<storage, read_write> side: array<vec4<u32>>;

// A thread makes 8 values; a workgroup 32 rows by 64.
@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y * 32u + local / 8u;
    let eight = group.x * 8u + local % 8u;
    if (eight * 8u >= step.k) { return; }
    var both = vec4<u32>();
    if (row < live_rows()) {
        let at = (step.in0 + row * step.in0_stride) / 4u + 2u * eight;
        both = vec4<u32>(packed(arena4[at]), packed(arena4[at + 1u]));
    }
    side[step.out0 + (group.y * (step.k / 8u) + eight) * 32u + local / 8u] = both;
}
