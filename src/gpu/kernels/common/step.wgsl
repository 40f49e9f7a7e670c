// The uniform of one dispatch, struct step_facts in C. Offsets (in0, out0 ...) are f32 indices into the arena; a stride
// is the number of values from one row to the next.
struct Step {
    in0: u32, in0_stride: u32,
    in1: u32, in1_stride: u32,
    in2: u32, in2_stride: u32,
    out0: u32, out0_stride: u32,
    out1: u32, out1_stride: u32,
    cols: u32,       // values of an output row (products: outputs)
    k: u32,          // values of an input row (products)
    width: u32,      // group or head size
    heads: u32,
    kv_heads: u32,
    window: u32,
    experts: u32,    // slots per row
    slotted: u32,    // 1: every slot has an input row of its own
    ring: u32,       // cache rows; 0: row = position
    logits: u32,     // 1: rows are the ones that want logits
    first_row: u32,  // of the bound range of the weights or of the cache, which may need several bindings
    row_count: u32,
    row_bytes: u32,
    has_weight: u32,
    scale: f32,
    eps: f32,
    eps2: f32,       // of a second norm
    cap: f32,        // of a softcap after a product
    // products of one input with several matrices: first output of the second and third, offsets of the matrices in
    // the binding in vectors of 16 bytes, and where they write
    part0_at: u32,
    part1: u32, part1_at: u32, part1_out: u32, part1_stride: u32,
    part2: u32, part2_at: u32, part2_out: u32, part2_stride: u32,
    stretch: u32,    // tiles: steps of k of one split
    expert0: u32, expert_count: u32, // whose matrices are bound, all of each
    parts: u32,      // attend: partial results for combine, of all splits and bindings; 1: the result itself
    first_part: u32, // ... of this dispatch
    row0: u32,       // first of the wanted rows that the step covers
    both_ways: u32,  // 1: attend sees all rows of the pass, and before them what the first one sees
    blocks: u32,     // attend: 1: rows of a picture see its later rows, 2: all of it
    sum_rows: u32,   // split-K inputs: rows of each split (common/split_input)
    in3: u32, in3_stride: u32,
    bounds01: vec4<f32>, bounds23: vec4<f32>, // encoders: four pairs of low, high
}

@group(0) @binding(0) var<uniform> step: Step;
