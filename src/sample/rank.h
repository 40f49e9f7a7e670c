/* The best tokens of a row of logits, best first: by logit descending, then by id ascending.
 * NaN and -inf are never listed; +inf is listed as the largest float. */
#ifndef BZ_SAMPLE_RANK_H
#define BZ_SAMPLE_RANK_H

#include <stdint.h>

typedef struct bz_candidate {
    float logit;
    int32_t id;
} bz_candidate;

/* The best k > 0 tokens of row[n] into out[k]; returns how many there are. For a few hundred the
 * cost is little more than reading the row. */
uint32_t bz_rank_best(const float *row, uint32_t n, uint32_t k, bz_candidate *out);

/* All of them, in time proportional to n; out, scratch: [n]. */
uint32_t bz_rank_all(const float *row, uint32_t n, bz_candidate *out, bz_candidate *scratch);

#endif
