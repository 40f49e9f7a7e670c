#include "cli/bench/bandwidth.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "base/pool.h"

enum { PIECE = 1 << 20, MAX_PIECES = 512, ROUNDS = 5 };

typedef struct reading {
    const uint64_t *buffer;
    uint64_t *sums; /* [pieces]: so that the reads are not optimized away */
} reading;

static void read_piece(void *context, uint32_t piece, unsigned worker)
{
    const reading *r = context;
    const uint64_t *p = r->buffer + (size_t)piece * (PIECE / sizeof *p);
    uint64_t sum[8] = {0};
    (void)worker;
    for (size_t i = 0; i < PIECE / sizeof *p; i += 8) {
        for (size_t k = 0; k < 8; k++) {
            sum[k] += p[i + k];
        }
    }
    r->sums[piece] = sum[0] + sum[1] + sum[2] + sum[3] + sum[4] + sum[5] + sum[6] + sum[7];
}

/* Each page is first written by the thread that will read it, so that it is in memory near that
 * thread. */
static void fill_piece(void *context, uint32_t piece, unsigned worker)
{
    const reading *r = context;
    (void)worker;
    memset((char *)(uintptr_t)r->buffer + (size_t)piece * PIECE, (int)(piece & 0x7F), PIECE);
}

double bandwidth_measure(unsigned threads)
{
    const uint64_t available = bz_os_memory_available();
    uint32_t pieces = MAX_PIECES;
    while (pieces > 16 && available && (uint64_t)pieces * PIECE > available / 4) {
        pieces /= 2;
    }
    uint64_t *buffer = bz_os_aligned_alloc(4096, (size_t)pieces * PIECE);
    uint64_t *sums = calloc(pieces, sizeof *sums);
    bz_pool *pool = bz_pool_new(threads);
    double best = 0;
    if (buffer && sums && pool) {
        reading r = {buffer, sums};
        bz_pool_run(pool, fill_piece, &r, 0, pieces, 0);
        for (int i = 0; i < ROUNDS; i++) {
            const uint64_t start = bz_os_now();
            bz_pool_run(pool, read_piece, &r, 0, pieces, 0);
            const double rate =
                (double)pieces * (double)PIECE / ((double)(bz_os_now() - start) / 1e9 + 1e-9);
            best = rate > best ? rate : best;
        }
    }
    if (pool) {
        bz_pool_free(pool);
    }
    free(sums);
    bz_os_aligned_free(buffer);
    return best;
}
