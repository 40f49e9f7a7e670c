/* Prompts of benchmarks: tokens from the whole vocabulary, so that every expert and every page of
 * the tables is used. */
#ifndef BZ_CLI_BENCH_RANDOM_IDS_H
#define BZ_CLI_BENCH_RANDOM_IDS_H

#include <stddef.h>
#include <stdint.h>

/* The first token is that of no other run, so that no run reuses what another computed. */
static inline void bench_random_ids(int32_t *ids, size_t n, uint32_t run, uint32_t vocab)
{
    uint64_t state = run * 0x9E3779B97F4A7C15u + 1;
    for (size_t i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        ids[i] = (int32_t)((state >> 33) % vocab);
    }
    ids[0] = (int32_t)(run % vocab);
}

#endif
