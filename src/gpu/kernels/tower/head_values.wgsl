// A head's values as values of the arena: a thread has every sixteenth.
fn value_of(lane: u32, t: u32) -> u32 { return lane + 16u * t; }

fn keep_value(row: u32, column: u32, t: u32, v: f32) { arena[step.out0 + row * step.out0_stride + column] = v; }
