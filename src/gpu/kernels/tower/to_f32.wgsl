// uses: common/arena4
// Results as f32 in the arena.
fn store4(offset: u32, stride: u32, row: u32, vector: u32, v: vec4<f32>) { arena4[(offset + row * stride) / 4u + vector] = v; }
