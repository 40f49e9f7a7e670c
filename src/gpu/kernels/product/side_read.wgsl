// uses: params.fused_product
// linear8 with an int8 input, laid out as product/side_write says. A binding that is only read: its loads are cached
// near the processor, unlike those of one that is also written.
@group(0) @binding(7) var<storage, read> side: array<vec4<u32>>;

fn store_sixteen(row: u32, u: u32, s: Sixteen) {}
