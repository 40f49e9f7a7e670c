// What every kernel sees. A kernel's text is rows.wgsl, this file, arena.wgsl (or arena4.wgsl), what it shares with
// others (gpu/kernels.c says which files), then its own.

// The facts of one dispatch that never change; names as in bz_step. Places are f32 indices into
// the arena, strides are values from row to row.
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
    first_row: u32,  // of the weights or of the cache that are bound, when they span several bindings
    row_count: u32,
    row_bytes: u32,
    has_weight: u32,
    scale: f32,
    eps: f32,
    eps2: f32,       // of a second norm
    cap: f32,        // of a softcap behind a product
    // products of one input with several matrices: output where the second and third begin, the matrices' places in
    // the binding in vectors of 16 bytes, and where they write
    part0_at: u32,
    part1: u32, part1_at: u32, part1_out: u32, part1_stride: u32,
    part2: u32, part2_at: u32, part2_out: u32, part2_stride: u32,
    stretch: u32,    // tiles: steps of k of one split
    expert0: u32, expert_count: u32, // whose matrices are bound, all of each
    parts: u32,      // attend: what is left for combine, of all splits and bindings together; 1: the result itself
    first_part: u32, // ... of this dispatch
    row0: u32,       // first row that a step of wanted rows is about
    both_ways: u32,  // 1: attend sees all rows of the pass, and before them what the first one sees
    blocks: u32,     // attend: 1: rows of a picture see what follows of it, 2: all of it
    sum_rows: u32,   // inputs that are sums of splits: rows of each split (sums.wgsl)
    in3: u32, in3_stride: u32,
    bounds01: vec4<f32>, bounds23: vec4<f32>, // towers: four times low, high
}

@group(0) @binding(0) var<uniform> step: Step;

// The parameter block of the pass (gpu/internal.h): n, rows that want logits, two words for choosing a token, then
// id, position and wanted row of each row, then the token that the pass before this one chose; of a canvas then
// whether it is fresh, its temperature, and a draw for each row; of pictures their first and last position for each row.
@group(0) @binding(1) var<storage, read> rows: array<u32>;

fn live_rows() -> u32 { return select(rows[0], rows[1], step.logits == 1u); }
fn token_of(row: u32) -> u32 { return select(rows[4u + 3u * row] & 0x3fffffffu, rows[CHOSEN], rows[3] == 1u); }
fn position_of(row: u32) -> u32 { return rows[5u + 3u * row]; }
fn wanted_row(i: u32) -> u32 { return rows[6u + 3u * i]; }

// The upper two bits of a row's id: it is no token and stands in the arena already; it is of a picture, whose first and
// last position lie behind everything else.
fn is_soft(row: u32) -> bool { return rows[3] == 0u && (rows[4u + 3u * row] & 0x80000000u) != 0u; }
fn is_of_picture(row: u32) -> bool { return rows[3] == 0u && (rows[4u + 3u * row] & 0x40000000u) != 0u; }

fn first_visible(row: u32) -> u32 {
    let position = position_of(select(row, 0u, step.both_ways == 1u));
    let first = select(0u, position + 1u - step.window, step.window > 0u && position + 1u > step.window);
    if (step.blocks == 2u && is_of_picture(row)) { return min(first, rows[7u + 4u * MAX_ROWS + 2u * row]); }
    return first;
}

fn last_visible(row: u32) -> u32 {
    if (step.blocks > 0u && is_of_picture(row)) { return rows[8u + 4u * MAX_ROWS + 2u * row]; }
    return position_of(select(row, live_rows() - 1u, step.both_ways == 1u));
}

// A dispatch may have more than 65,535 workgroups: the host folds the count into two dimensions.
fn folded(id: vec3<u32>, count: vec3<u32>) -> u32 { return id.x + id.y * count.x; }
