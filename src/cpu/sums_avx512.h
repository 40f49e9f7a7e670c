/* The sum of the lanes of `dot`, for kernels with 512 bits that have its bits. */
#ifndef BZ_CPU_SUMS_AVX512_H
#define BZ_CPU_SUMS_AVX512_H

#include <immintrin.h>

/* dot's four sums of eight lanes, in two vectors. */
static inline __attribute__((always_inline)) float bz_sum_of_four(__m512 s01, __m512 s23)
{
    const __m256 a = _mm256_add_ps(_mm512_castps512_ps256(s01), _mm512_extractf32x8_ps(s01, 1)),
                 b = _mm256_add_ps(_mm512_castps512_ps256(s23), _mm512_extractf32x8_ps(s23, 1)),
                 v = _mm256_add_ps(a, b);
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

#endif
