/* Attention of one row over cached keys and values in f16, as they are: the heads of a KV head
 * share every load. The same bits as dequantize, dot and panel. */
#if defined(__x86_64__)

#include <immintrin.h>

#include "cpu/kernels.h"
#include "cpu/sums_avx512.h"

#define INLINE static inline __attribute__((always_inline))

enum {
    HEADS = 4, /* that share a load */
    PAIR = 2,  /* positions that share a query's load */
    STEP = 32  /* values */
};

INLINE __m512 halves16(const uint8_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

/* H heads by P positions. */
INLINE void scores_of(const size_t H, const size_t P, const float *q, const uint8_t *keys,
                      size_t row_bytes, size_t d, float *scores, size_t stride)
{
    __m512 sum[HEADS][PAIR][2];
    for (size_t h = 0; h < H; h++)
        for (size_t p = 0; p < P; p++)
            sum[h][p][0] = sum[h][p][1] = _mm512_setzero_ps();
    for (size_t i = 0; i < d; i += STEP)
        for (size_t half = 0; half < 2; half++) {
            __m512 k[PAIR];
            for (size_t p = 0; p < P; p++)
                k[p] = halves16(keys + p * row_bytes + 2 * i + 32 * half);
            for (size_t h = 0; h < H; h++) {
                const __m512 x = _mm512_loadu_ps(q + h * d + i + 16 * half);
                for (size_t p = 0; p < P; p++)
                    sum[h][p][half] = _mm512_fmadd_ps(k[p], x, sum[h][p][half]);
            }
        }
    for (size_t h = 0; h < H; h++)
        for (size_t p = 0; p < P; p++)
            scores[h * stride + p] = bz_sum_of_four(sum[h][p][0], sum[h][p][1]);
}

INLINE void scores_of_heads(const size_t H, const float *q, const uint8_t *keys, size_t row_bytes,
                            size_t n, size_t d, float *scores, size_t stride)
{
    size_t j = 0;
    for (; j + PAIR <= n; j += PAIR)
        scores_of(H, PAIR, q, keys + j * row_bytes, row_bytes, d, scores + j, stride);
    if (j < n)
        scores_of(H, 1, q, keys + j * row_bytes, row_bytes, d, scores + j, stride);
}

void bz_scores_f16_avx512(const float *q, size_t heads, const uint8_t *keys, size_t row_bytes,
                          size_t n, size_t d, float *scores, size_t stride)
{
    for (; heads >= HEADS; heads -= HEADS, q += HEADS * d, scores += HEADS * stride)
        scores_of_heads(HEADS, q, keys, row_bytes, n, d, scores, stride);
    for (; heads > 0; heads--, q += d, scores += stride)
        scores_of_heads(1, q, keys, row_bytes, n, d, scores, stride);
}

/* H heads by 32 values. */
INLINE void values_of(const size_t H, const float *weights, size_t stride, const uint8_t *values,
                      size_t row_bytes, size_t n, size_t d, float *sums, bool add)
{
    __m512 sum[HEADS][2];
    for (size_t h = 0; h < H; h++)
        for (size_t half = 0; half < 2; half++)
            sum[h][half] = add ? _mm512_loadu_ps(sums + h * d + 16 * half) : _mm512_setzero_ps();
    for (size_t j = 0; j < n; j++) {
        const __m512 v0 = halves16(values + j * row_bytes),
                     v1 = halves16(values + j * row_bytes + 32);
        for (size_t h = 0; h < H; h++) {
            const __m512 w = _mm512_set1_ps(weights[h * stride + j]);
            sum[h][0] = _mm512_fmadd_ps(w, v0, sum[h][0]);
            sum[h][1] = _mm512_fmadd_ps(w, v1, sum[h][1]);
        }
    }
    for (size_t h = 0; h < H; h++)
        for (size_t half = 0; half < 2; half++)
            _mm512_storeu_ps(sums + h * d + 16 * half, sum[h][half]);
}

void bz_values_f16_avx512(const float *weights, size_t stride, size_t heads, const uint8_t *values,
                          size_t row_bytes, size_t n, size_t d, float *sums, bool add)
{
    for (; heads >= HEADS; heads -= HEADS, weights += HEADS * stride, sums += HEADS * d)
        for (size_t i = 0; i < d; i += STEP)
            values_of(HEADS, weights, stride, values + 2 * i, row_bytes, n, d, sums + i, add);
    for (; heads > 0; heads--, weights += stride, sums += d)
        for (size_t i = 0; i < d; i += STEP)
            values_of(1, weights, stride, values + 2 * i, row_bytes, n, d, sums + i, add);
}

#else
typedef int bz_no_avx512_heads; /* ISO C requires a declaration */
#endif
