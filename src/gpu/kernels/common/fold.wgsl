// A dispatch dimension holds at most 65,535 workgroups: the host folds a larger count into two dimensions.
fn folded(id: vec3<u32>, count: vec3<u32>) -> u32 { return id.x + id.y * count.x; }
