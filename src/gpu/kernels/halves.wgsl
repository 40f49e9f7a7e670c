// Rows as f16, for kernels on matrices (matrices.wgsl): in slabs of 32 rows by 16 values, [row / 32][value / 16], a slab
// being [value / 8][row][8 values] so that a subgroup reads 512 bytes at once. What f16 cannot hold becomes the
// greatest that it can; rows behind the last one are zeros.
const MOST = 65504.0;

@group(0) @binding(3) var<storage, read_write> side: array<vec4<u32>>;

fn packed(v: vec4<f32>) -> vec2<u32> {
    let x = between(v, vec2<f32>(-MOST, MOST));
    return vec2<u32>(pack2x16float(x.xy), pack2x16float(x.zw));
}

// A thread makes 8 values; a workgroup 32 rows by 64.
@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y * 32u + local % 32u;
    let eight = group.x * 8u + local / 32u;
    if (eight * 8u >= step.k) { return; }
    var both = vec4<u32>();
    if (row < live_rows()) {
        let at = (step.in0 + row * step.in0_stride) / 4u + 2u * eight;
        both = vec4<u32>(packed(arena4[at]), packed(arena4[at + 1u]));
    }
    side[step.out0 + (group.y * (step.k / 8u) + eight) * 32u + local % 32u] = both;
}
