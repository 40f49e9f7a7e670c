/* What happens between two passes over a canvas: which tokens are accepted, which become noise
 * again, and when the canvas is done. Works on the logit statistics of each row only. */
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
    uint32_t same;               /* consecutive steps without a change of the best tokens */
    bool any;                    /* at least one step was done */
    int32_t best[BZ_MAX_CANVAS]; /* [n] best tokens of the last step */
} bz_denoise_state;

/* Temperature of the pass with `left` steps left, itself included. */
float bz_denoise_temperature(const bz_denoise_rule *rule, uint32_t left);

/* Accepts positions in ascending order of entropy (ties by position) while the entropies of those
 * before sum to at most `bound`: always the first one, and the one that crosses the bound.
 * entropy, accepted: [n]. */
void bz_denoise_accept(const float *entropy, uint32_t n, float bound, bool *accepted);

/* Records a step's best tokens; true: they were stable long enough and the mean entropy is below
 * the confidence bound. best, entropy: [n]. */
bool bz_denoise_settled(bz_denoise_state *state, const bz_denoise_rule *rule, const int32_t *best,
                        const float *entropy);

/* Random numbers as a function of seed, position and step (0: before the first), so that a result
 * does not depend on how it was computed. unit: in [0, 1). noise: a token id. */
float bz_denoise_unit(uint64_t seed, uint32_t position, uint32_t step);
int32_t bz_denoise_noise(uint64_t seed, uint32_t position, uint32_t step, uint32_t vocab);

#endif
