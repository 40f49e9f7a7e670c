// uses: canvas/common
// Shared by the kernels of soft_embed, y = sum of p(token) * table[token] * scale over the vocabulary:
//   soft_weigh    replaces logits by e = exp(z - peak) and counts them by size
//   soft_cut      finds for each row the size below which all e together are less than `omitted` of the row's sum
//   soft_offsets  sets where each row's tokens begin in the list
//   soft_list     lists the tokens that are left
//   soft_gather   accumulates their rows of the table
//   soft_embed    takes the whole table instead, where distributions are so flat that the list (`list_capacity`) is
//                 too short
//   soft_sum      adds the partial sums of either
// counts: how many tokens are listed in all;
//         [row]: how many of it, the first bin that is left out, how many in the rows before;
//         [row][range]: how many are listed before the range, and in it;
//         [row][range][BINS / 2]: counts of two bins, first + PAIR_BASE * second
const BINS = 160u; // four per power of 2, from 1 down; the last one has all smaller values
const PAIRS = BINS / 2u;
const PAIR_BASE = 4096.0; // more than RANGE; both counts together fit in the 24 bits of an f32

fn ranges() -> u32 { return (params.vocab + RANGE - 1u) / RANGE; }
fn row_note(row: u32) -> u32 { return params.counts + 1u + 3u * row; }
fn range_note(row: u32, i: u32) -> u32 { return row_note(live_rows()) + (row * ranges() + i) * 2u; }
fn counts_of(row: u32, i: u32) -> u32 {
    return row_note(live_rows()) + 2u * live_rows() * ranges() + (row * ranges() + i) * PAIRS;
}

// Bin of e in (0, 1], by its bits, so that all kernels agree.
fn bin_of(e: f32) -> u32 { return min(508u - min(bitcast<u32>(e) >> 21u, 508u), BINS - 1u); }
// Upper bound of the bin.
fn bin_top(bin: u32) -> f32 { return bitcast<f32>((509u - bin) << 21u); }

fn two_counts(at: u32) -> vec2<f32> {
    let both = arena[at];
    let second = floor(both / PAIR_BASE);
    return vec2<f32>(both - PAIR_BASE * second, second);
}

const MIN_ENTRIES = 16u; // of a partial sum

fn listed_of(row: u32) -> u32 { return u32(arena[row_note(row)]); }
fn part_entries(count: u32) -> u32 { return max((count + params.list_parts - 1u) / params.list_parts, MIN_ENTRIES); }
fn listed_before(row: u32) -> u32 { return u32(arena[row_note(row) + 2u]); }
fn all_fit() -> bool { return u32(arena[params.counts]) <= params.list_capacity; }

// Uniform in the workgroup, so that barriers may follow.
var<workgroup> all_fit_flag: u32;
fn group_all_fit(local: u32) -> bool {
    if (local == 0u) { all_fit_flag = select(0u, 1u, all_fit()); }
    return workgroupUniformLoad(&all_fit_flag) == 1u;
}
