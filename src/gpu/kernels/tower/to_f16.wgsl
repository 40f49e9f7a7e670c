// uses: tower/pack_f16
// Results as f16 in the side buffer, in slabs (product/to_f16); offsets there are in vectors of 16 bytes.
@group(0) @binding(F16_BINDING) var<storage, read_write> side: array<vec2<u32>>;

fn store4(offset: u32, stride: u32, row: u32, vector: u32, v: vec4<f32>) {
    let octet = offset + (row / 32u * (stride / 8u) + vector / 2u) * 32u + row % 32u;
    side[2u * octet + vector % 2u] = pack_f16(v);
}
