// A kernel's results as values of the arena.
fn keep4(place: u32, stride: u32, row: u32, vector: u32, v: vec4<f32>) { arena4[(place + row * stride) / 4u + vector] = v; }
