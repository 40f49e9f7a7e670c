/* The rate of the instructions that multiply, for the roofline of bench/compare_speed.py.
 *
 *   bench_peak TABLE THREADS
 *
 * Prints "int8", "bf16" or "f32", what the table multiplies in that format with, and Gop/s of all
 * threads together (a multiplication and an addition are two operations): independent sums in
 * registers, nothing is loaded. AVX2 takes three instructions for int8. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "base/pool.h"
#include "cpu/kernels.h"

/* Twice six cycles of delay and one more; with AVX2 there are 16 registers. */
enum { SUMS = 13, ROUNDS = 1 << 20, REPEATS = 12 };

#if defined(__x86_64__)
#include <immintrin.h>

/* ROUNDS times SUMS independent updates of `sum`; the compiler may not know what is in a. */
#define PEAK(name, features, vector, factor, zero, update)                                         \
    static __attribute__((target(features))) void name(void *user, uint32_t task, unsigned worker) \
    {                                                                                              \
        vector sums[SUMS];                                                                         \
        factor a = (factor)zero;                                                                   \
        (void)user, (void)task, (void)worker;                                                      \
        _Pragma("GCC unroll 13") for (int i = 0; i < SUMS; i++) sums[i] = (vector)zero;            \
        for (int r = 0; r < ROUNDS; r++)                                                           \
            _Pragma("GCC unroll 13") for (int i = 0; i < SUMS; i++)                                \
            {                                                                                      \
                vector sum = sums[i];                                                              \
                __asm__("" : "+x"(a));                                                             \
                sums[i] = update;                                                                  \
            }                                                                                      \
        _Pragma("GCC unroll 13") for (int i = 0; i < SUMS;                                         \
                                      i++) __asm__ volatile("" ::"x"(sums[i]));                    \
    }

PEAK(int8_512, "avx512f,avx512vnni", __m512i, __m512i, _mm512_setzero_si512(),
     _mm512_dpbusd_epi32(sum, a, a))
PEAK(bf16_512, "avx512f,avx512bf16", __m512, __m512bh, _mm512_setzero_si512(),
     _mm512_dpbf16_ps(sum, a, a))
PEAK(f32_512, "avx512f", __m512, __m512, _mm512_setzero_ps(), _mm512_fmadd_ps(a, a, sum))
PEAK(int8_vnni, "avx2,avxvnni", __m256i, __m256i, _mm256_setzero_si256(),
     _mm256_dpbusd_avx_epi32(sum, a, a))
PEAK(int8_avx2, "avx2", __m256i, __m256i, _mm256_setzero_si256(),
     _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(a, a), _mm256_set1_epi16(1))))
PEAK(f32_256, "avx2,fma", __m256, __m256, _mm256_setzero_ps(), _mm256_fmadd_ps(a, a, sum))
#endif

static const struct peak {
    const char *table, *format;
    void (*run)(void *user, uint32_t task, unsigned worker);
    double operations; /* of an update */
} peaks[] = {
#if defined(__x86_64__)
    {"avx512bf16", "int8", int8_512, 128},
    {"avx512bf16", "bf16", bf16_512, 64},
    {"avx512bf16", "f32", f32_512, 32},
    {"avx512", "int8", int8_512, 128},
    {"avx512", "f32", f32_512, 32},
    {"avxvnni", "int8", int8_vnni, 64},
    {"avxvnni", "f32", f32_256, 16},
    {"avx2", "int8", int8_avx2, 64},
    {"avx2", "f32", f32_256, 16},
#endif
    {NULL, NULL, NULL, 0}};

int main(int argc, char **argv)
{
    const unsigned threads = argc == 3 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    if (threads < 1 || threads > 1024 || !bz_kernels_best(argv[1])) {
        fprintf(stderr, "usage: bench_peak TABLE THREADS, a table that this processor has\n");
        return 2;
    }
    bz_pool *pool = bz_pool_new(threads);
    for (const struct peak *p = peaks; pool && p->table; p++) {
        double best = 0;
        for (int i = 0; i < REPEATS && strcmp(p->table, argv[1]) == 0; i++) {
            const uint64_t start = bz_os_now();
            bz_pool_run(pool, p->run, NULL, 0, threads, 0);
            const double rate =
                threads * p->operations * SUMS * ROUNDS / (double)(bz_os_now() - start);
            best = rate > best ? rate : best;
        }
        if (best > 0)
            printf("%s %.1f\n", p->format, best);
    }
    if (pool)
        bz_pool_free(pool);
    return 0;
}
