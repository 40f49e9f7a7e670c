/* Random numbers and random blocks of every tensor type, the same on every machine. */
#ifndef BZ_TEST_RANDOM_H
#define BZ_TEST_RANDOM_H

#include "file/quant.h"

void random_seed(uint32_t seed); /* not 0 */
/* From the environment (BEZEL_SEED), else `otherwise`; printed, so that a failure can be
 * reproduced. */
void random_seed_or(uint32_t otherwise);

uint32_t random_bits(void);
float random_float(void); /* in -1..1 */
size_t random_below(size_t n);

/* What the scales in a block's f16 fields may be. */
typedef enum block_scales {
    SCALES_ANY,    /* infinities and NaN too */
    SCALES_FINITE, /* the smallest and the largest too */
    SCALES_TAME    /* between 2^-7 and 2^-6, either sign */
} block_scales;

/* Fills n values' worth of blocks with random bytes. */
void random_blocks(bz_type type, uint8_t *blocks, size_t n, block_scales scales);

#endif
