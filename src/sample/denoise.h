/* What happens between two passes over a canvas: which tokens stay, which become noise again, when
 * it is settled. Everything the device reduced a row to is here; nothing is as long as the
 * vocabulary. */
#ifndef BZ_SAMPLE_DENOISE_H
#define BZ_SAMPLE_DENOISE_H

#include "base/error.h"

enum { BZ_MAX_CANVAS = 512 };

typedef struct bz_denoise_rule {
    uint32_t steps;
    float t_min, t_max, entropy_bound, confidence;
    uint32_t stability;
} bz_denoise_rule;

typedef struct bz_denoise_state {
    uint32_t n;
    uint32_t same;               /* steps before the last one with its best tokens, in a row */
    bool any;                    /* there was a step */
    int32_t best[BZ_MAX_CANVAS]; /* of the last step */
} bz_denoise_state;

/* Of the pass with so many steps left, itself included. */
float bz_denoise_temperature(const bz_denoise_rule *rule, uint32_t left);

/* Positions from the surest on, as long as those before have less than the bound of entropy
 * together: the first one always, and the one that crosses the bound. Equals by position. */
void bz_denoise_accept(const float *entropy, uint32_t n, float bound, bool *accepted);

/* Notes a step's best tokens; true: they have been the same long enough and are certain. */
bool bz_denoise_settled(bz_denoise_state *state, const bz_denoise_rule *rule, const int32_t *best,
                        const float *entropy);

/* Chance from a seed: a function of position and step (0: before the first), so that an answer does
 * not depend on how it was made. unit: of [0, 1). */
float bz_denoise_unit(uint64_t seed, uint32_t position, uint32_t step);
int32_t bz_denoise_noise(uint64_t seed, uint32_t position, uint32_t step, uint32_t vocab);

#endif
