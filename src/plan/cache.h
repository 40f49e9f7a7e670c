/* How keys and values are stored: the types of the KV cache. */
#ifndef BZ_PLAN_CACHE_H
#define BZ_PLAN_CACHE_H

#include <stdbool.h>

#include "base/error.h"

/* Q8 and Q4: blocks of BZ_CACHE_BLOCK values of a head, each with one f16 scale d; the last block
 * of a head may be shorter. Value = d * q; q in -127..127, or in -8..7. A block with a NaN or an
 * infinity, or with values too large for the scale, has a scale that is not finite: then so is what
 * attends to that position, and nothing else.
 *
 * Before they are rounded to Q4, keys and values are rotated within each block: H x, H = Hadamard
 * matrix / sqrt(32), its own inverse. That spreads a large value over its block. Queries are
 * rotated as well, which leaves their products with keys as they were, and so is the sum of the
 * values, which is then what it would have been. */
typedef enum bz_cache_type {
    BZ_CACHE_F16,
    BZ_CACHE_F32,
    BZ_CACHE_Q8, /* 8.5 bits per value */
    BZ_CACHE_Q4  /* 4.5 bits */
} bz_cache_type;

enum { BZ_CACHE_BLOCK = 32 };

/* "f16", "f32", "q8", "q4" */
const char *bz_cache_type_name(bz_cache_type type);
/* "f16", "q8" or "q4"; NULL: f32 if everything is to be exact, else f16. */
bz_status bz_cache_type_named(bz_cache_type *out, const char *name, bool exact, bz_error *err);
/* Bytes of one key or value of n numbers. */
uint32_t bz_cache_bytes(bz_cache_type type, uint32_t n);

#endif
