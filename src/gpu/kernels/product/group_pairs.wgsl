// uses: params.expert common/pass common/arena
// group_pairs: lists rows by the expert they chose, for the grouped tile kernels.
// in0: [row][slots] chosen experts. A pair is row * slots + slot. A row never chooses an
// expert twice, so the pairs of an expert are a set of rows, kept as bits: the index of a pair in its expert's list is
// the number of bits below.
// Writes to the side buffer
//   vector out0: (number of tiles, 0, 0, 0), then a vector (expert, first of the list, pairs) per tile of TILE rows
//   vector out1: the list of pairs, expert by expert, rows in order
// One workgroup; EXPERTS experts at a time.
override TILE: u32 = 64u;
const THREADS = 256u;
override EXPERTS: u32 = 128u; // at most 128, and EXPERTS * WORDS at most 2560
override WORDS: u32 = 16u;    // words of bits for all rows

@group(0) @binding(3) var<storage, read_write> side: array<u32>;

var<workgroup> chosen_by: array<atomic<u32>, 2560>; // [EXPERTS][WORDS]: bit r of word w is row 32 w + r
var<workgroup> pairs: array<u32, 128>;              // count of each expert, then inclusive sums
var<workgroup> tiles: array<u32, 128>;              // the same of tiles

fn expert_of(pair: u32) -> u32 {
    return u32(arena[params.in0 + pair / params.slots * params.in0_stride + pair % params.slots]);
}

@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) local: u32) {
    let all = live_rows() * params.slots;
    var n_pairs = 0u; // of the experts of earlier rounds
    var n_tiles = 0u;
    for (var first = 0u; first < params.experts; first += EXPERTS) {
        for (var i = local; i < EXPERTS * WORDS; i += THREADS) { atomicStore(&chosen_by[i], 0u); }
        workgroupBarrier();
        for (var p = local; p < all; p += THREADS) {
            let e = expert_of(p) - first;
            let row = p / params.slots;
            if (e < EXPERTS) { atomicOr(&chosen_by[e * WORDS + row / 32u], 1u << (row & 31u)); }
        }
        workgroupBarrier();
        if (local < EXPERTS) {
            var count = 0u;
            for (var w = 0u; w < WORDS; w++) { count += countOneBits(atomicLoad(&chosen_by[local * WORDS + w])); }
            pairs[local] = count;
            tiles[local] = (count + TILE - 1u) / TILE;
        }
        workgroupBarrier();
        // inclusive sums
        for (var back = 1u; back < EXPERTS; back <<= 1u) {
            var a = 0u;
            var b = 0u;
            if (local < EXPERTS && local >= back) {
                a = pairs[local - back];
                b = tiles[local - back];
            }
            workgroupBarrier();
            if (local < EXPERTS) {
                pairs[local] += a;
                tiles[local] += b;
            }
            workgroupBarrier();
        }
        if (local < EXPERTS) {
            let before = select(0u, pairs[max(local, 1u) - 1u], local > 0u);
            let count = pairs[local] - before;
            var tile = n_tiles + select(0u, tiles[max(local, 1u) - 1u], local > 0u);
            for (var done = 0u; done < count; done += TILE) {
                let at = (params.out0 + 1u + tile) * 4u;
                side[at] = first + local;
                side[at + 1u] = n_pairs + before + done;
                side[at + 2u] = min(count - done, TILE);
                tile++;
            }
        }
        for (var p = local; p < all; p += THREADS) {
            let e = expert_of(p) - first;
            let row = p / params.slots;
            if (e < EXPERTS) {
                var offset = n_pairs + select(0u, pairs[max(e, 1u) - 1u], e > 0u);
                for (var w = 0u; w < row / 32u; w++) { offset += countOneBits(atomicLoad(&chosen_by[e * WORDS + w])); }
                offset += countOneBits(atomicLoad(&chosen_by[e * WORDS + row / 32u]) & ((1u << (row & 31u)) - 1u));
                side[params.out1 * 4u + offset] = p;
            }
        }
        n_pairs += pairs[EXPERTS - 1u];
        n_tiles += tiles[EXPERTS - 1u];
        workgroupBarrier(); // before the next round clears
    }
    if (local == 0u) { side[params.out0 * 4u] = n_tiles; }
}
