// uses: params.convert common/pass common/arena4 tower/pack_f16
// to_f16: rows of the arena as f16 in the side buffer, for the kernels on subgroup matrices (common/matrices).
// in0: [rows][k] f32 -> slabs of 32 rows by 16 values, [row / 32][k / 16]; a slab is [value / 8][row][8 values], so
// that a subgroup reads 512 bytes at once. Rows past the last one are zeros.
//
// A thread converts 8 values, a workgroup 32 rows by 64.
@group(0) @binding(3) var<storage, read_write> side: array<vec4<u32>>;

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) local: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let row = group.y * 32u + local / 8u;
    let octet = group.x * 8u + local % 8u;
    if (octet * 8u >= params.k) { return; }
    var both = vec4<u32>();
    if (row < live_rows()) {
        let at = (params.in0 + row * params.in0_stride) / 4u + 2u * octet;
        both = vec4<u32>(pack_f16(arena4[at]), pack_f16(arena4[at + 1u]));
    }
    side[params.out0 + (group.y * (params.k / 8u) + octet) * 32u + local / 8u] = both;
}
