// What the kernels of soft_embed share. soft_weigh turns logits into e = e to the (z - peak) where they lie and counts them
// by size; soft_cut finds for every row the size below which all of them together are less than `eps` of the row's
// sum; soft_place puts rows one behind the other; soft_list lists the others, and soft_gather adds up their rows of the
// table. Where distributions are so flat that the lists have no room (`heads` entries), soft_embed takes the whole table
// instead. soft_sum adds up the shares of either.
//   in2: how many are kept in all; [row] how many of it, the first bin left out, and how many in the rows before;
//        then [row][stretch] how many are kept before the stretch, and in it; then [row][stretch][BINS / 2] counts of
//        two bins, the second one's times MUCH.
//   in2_stride: the list of tokens.
//   experts: shares of a row's list at most; soft_gather makes them of each binding.
const BINS = 160u;   // four to a power of 2, from 1 down; the last one takes all that is smaller
const PAIRS = BINS / 2u;
const MUCH = 4096.0; // more than a stretch has; both counts together are a whole number of less than 24 bits

fn stretches() -> u32 { return (step.k + STRETCH - 1u) / STRETCH; }
fn row_note(row: u32) -> u32 { return step.in2 + 1u + 3u * row; }
fn stretch_note(row: u32, i: u32) -> u32 { return row_note(live_rows()) + (row * stretches() + i) * 2u; }
fn counts_of(row: u32, i: u32) -> u32 {
    return row_note(live_rows()) + 2u * live_rows() * stretches() + (row * stretches() + i) * PAIRS;
}

// Of e in (0, 1], by its bits: the same wherever it is asked.
fn bin_of(e: f32) -> u32 { return min(508u - min(bitcast<u32>(e) >> 21u, 508u), BINS - 1u); }
// No e of the bin is greater.
fn bin_top(bin: u32) -> f32 { return bitcast<f32>((509u - bin) << 21u); }

fn two_counts(at: u32) -> vec2<f32> {
    let both = arena[at];
    let second = floor(both / MUCH);
    return vec2<f32>(both - MUCH * second, second);
}

const LEAST_ENTRIES = 16u; // of a share

fn kept_of(row: u32) -> u32 { return u32(arena[row_note(row)]); }
fn share_entries(kept: u32) -> u32 { return max((kept + step.experts - 1u) / step.experts, LEAST_ENTRIES); }
fn kept_before(row: u32) -> u32 { return u32(arena[row_note(row) + 2u]); }
fn listed() -> bool { return u32(arena[step.in2]) <= step.heads; }

// The same for a whole workgroup, so that barriers may follow.
var<workgroup> all_listed: u32;
fn group_listed(local: u32) -> bool {
    if (local == 0u) { all_listed = select(0u, 1u, listed()); }
    return workgroupUniformLoad(&all_listed) == 1u;
}
