/* Whether products that were never timed on a kind of processor pay on this one. */
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "cpu/products.h"

/* ROWS: whole blocks of 6 and of 16. */
enum { K = 1024, OUTPUTS = BZ_PRODUCT_TILE, ROWS = 48, RUNS = 8, MAX_BLOCK_BYTES = 210 };

/* With minima and groups of 32, and without and of 16. */
static const bz_type types[] = {BZ_Q4_K, BZ_Q6_K};

typedef struct sample {
    uint8_t weights[OUTPUTS * K / 256 * MAX_BLOCK_BYTES];
    int8_t q[ROWS][K];
    float d[ROWS][K / 32], sum[ROWS][K / 16];
    int8_t unpacked[16 * K];
    float scales[K], minima[K]; /* of 16 unpacked rows */
} sample;

/* What one table makes of it. */
typedef struct side {
    const bz_products *by;
    uint8_t *panels, *blocks;
    float out[ROWS][OUTPUTS];
    uint64_t shortest; /* time of a run */
} side;

/* All numbers are finite: no byte above 0x3F makes an infinity or NaN of 16 bits. */
static void fill(sample *s)
{
    uint32_t x = 1;
    for (size_t i = 0; i < sizeof s->weights; i++) {
        x = x * 1664525u + 1013904223u;
        s->weights[i] = x >> 24 & 0x3F;
    }
    for (size_t r = 0; r < ROWS; r++)
        for (size_t i = 0; i < K; i++) {
            x = x * 1664525u + 1013904223u;
            s->q[r][i] = (int8_t)((int)(x >> 24) % 255 - 127);
            s->d[r][i / 32] = s->sum[r][i / 16] = (float)(1 + x % 7) / 128;
        }
}

static bool open_side(side *s, const bz_products *by)
{
    s->by = by;
    s->panels = bz_os_aligned_alloc(64, (by->panel_bytes(K) + 63) / 64 * 64);
    s->blocks = bz_os_aligned_alloc(64, ROWS * by->block_bytes(K)); /* more than enough */
    return s->panels && s->blocks;
}

static void close_side(side *s)
{
    bz_os_aligned_free(s->panels);
    bz_os_aligned_free(s->blocks);
}

static void prepare(side *s, bz_type type, sample *from)
{
    const bz_products *by = s->by;
    by->pack(type, from->weights, OUTPUTS, K, (bz_w8){from->unpacked, from->scales, from->minima},
             s->panels);
    for (size_t r = 0; r < ROWS; r++)
        by->arrange_in_block(&(bz_q8){from->q[r], from->d[r], from->sum[r]}, K, r % by->block_rows,
                             s->blocks + r / by->block_rows * by->block_bytes(K));
    s->shortest = UINT64_MAX;
}

static void run(side *s, bz_type type)
{
    const uint64_t start = bz_os_now();
    bz_product_multiply(s->by, type, s->panels, OUTPUTS, s->blocks, ROWS, K, s->out[0], OUTPUTS);
    const uint64_t time = bz_os_now() - start;
    s->shortest = time < s->shortest ? time : s->shortest;
}

/* In turns, so that both meet the same load of the machine. */
static bool same_and_faster(sample *from, side *these, side *known)
{
    uint64_t time = 0, known_time = 0;
    fill(from);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        prepare(these, types[t], from);
        prepare(known, types[t], from);
        for (size_t r = 0; r < RUNS; r++) {
            run(these, types[t]);
            run(known, types[t]);
        }
        if (memcmp(these->out, known->out, sizeof known->out) != 0)
            return false;
        time += these->shortest;
        known_time += known->shortest;
    }
    return time < known_time;
}

bool bz_products_pay(const bz_products *these, const bz_products *known)
{
    side a = {0}, b = {0};
    sample *from = malloc(sizeof *from);
    const bool opened = open_side(&a, these) && open_side(&b, known);
    const bool pay = from && opened && same_and_faster(from, &a, &b);
    free(from);
    close_side(&a);
    close_side(&b);
    return pay;
}
