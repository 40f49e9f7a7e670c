// uses: params.fused_product
// linear8: int8 tensors in the side buffer. Integers [row][values / 16], scales [row][values / 32] of (scale, scale *
// sum) of two sixteens.
@group(0) @binding(7) var<storage, read_write> side: array<vec4<u32>>;

// Sixteen u of a row.
fn store_sixteen(row: u32, u: u32, s: Sixteen) {
    side[params.out0 + row * (params.row_count / 16u) + u] = s.q;
    let scale = bitcast<vec2<u32>>(s.scale_and_sum);
    let to = params.out0_stride + row * (params.row_count / 32u) + u / 2u;
    if ((u & 1u) == 0u) {
        side[to].x = scale.x;
        side[to].y = scale.y;
    } else {
        side[to].z = scale.x;
        side[to].w = scale.y;
    }
}
