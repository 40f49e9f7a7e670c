/* The rules between two denoising passes: temperature, acceptance, end, random numbers. */
#include "sample/denoise.h"

#include <string.h>

#include "sample/random.h"

float bz_denoise_temperature(const bz_denoise_rule *r, uint32_t left)
{
    return (float)((double)r->t_min +
                   ((double)r->t_max - (double)r->t_min) * ((double)left / r->steps));
}

void bz_denoise_accept(const float *entropy, uint32_t n, float bound, bool *accepted)
{
    uint16_t order[BZ_MAX_CANVAS];
    for (uint32_t i = 0; i < n; i++) { /* insertion sort: stable */
        uint32_t at = i;
        for (; at > 0 && entropy[order[at - 1]] > entropy[i]; at--) {
            order[at] = order[at - 1];
        }
        order[at] = (uint16_t)i;
    }
    double before = 0;
    for (uint32_t i = 0; i < n; i++) {
        accepted[order[i]] = before <= (double)bound;
        before += (double)entropy[order[i]];
    }
}

bool bz_denoise_settled(bz_denoise_state *s, const bz_denoise_rule *r, const int32_t *best,
                        const float *entropy)
{
    double sum = 0;
    const bool equal = s->any && memcmp(s->best, best, s->n * sizeof *best) == 0;
    s->same = equal ? s->same + 1 : 0;
    s->any = true;
    memcpy(s->best, best, s->n * sizeof *best);
    for (uint32_t i = 0; i < s->n; i++) {
        sum += (double)entropy[i];
    }
    return s->same >= r->stability && sum / s->n < (double)r->confidence;
}

/* Index of a random number: two for every step of every position. */
static uint64_t draw_index(uint32_t position, uint32_t step, uint32_t which)
{
    return ((uint64_t)position << 16 | step) << 1 | which;
}

float bz_denoise_unit(uint64_t seed, uint32_t position, uint32_t step)
{
    return (float)(bz_random_bits(seed, draw_index(position, step, 0)) >> 40) *
           0x1p-24f; /* 24 bits: never rounds to 1 */
}

int32_t bz_denoise_noise(uint64_t seed, uint32_t position, uint32_t step, uint32_t vocab)
{
    return (int32_t)(bz_random_unit(seed, draw_index(position, step, 1)) * vocab);
}
