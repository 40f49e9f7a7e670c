#include "sample/greedy.h"

int32_t bz_sample_greedy(const float *logits, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++) {
        /* NaN compares false; one at the front must not win either */
        if (logits[i] > logits[best] || logits[best] != logits[best]) {
            best = i;
        }
    }
    return (int32_t)best;
}
