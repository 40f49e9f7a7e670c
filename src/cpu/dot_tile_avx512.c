/* Weight rows by activation rows in f32, a few of each at once: every load serves several sums. The
 * bits of the `dot` of AVX2, whose four sums of eight lanes are two vectors here. */
#if defined(__x86_64__)

#include <immintrin.h>

#include "cpu/kernels.h"
#include "cpu/sums_avx512.h"

#define INLINE static inline __attribute__((always_inline))

enum {
    WEIGHTS = 3, /* weight rows and activation rows, whose 24 sums fit 32 registers */
    ROWS = 4,
    STEP = 32 /* values */
};

/* The last n < STEP values: whole vectors of eight go to the first sum, what is left to the second.
 */
INLINE void add_rest(const float *w, const float *x, size_t n, __m512 *s01)
{
    __m256 s0 = _mm512_castps512_ps256(*s01), s1 = _mm512_extractf32x8_ps(*s01, 1);
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        s0 = _mm256_fmadd_ps(_mm256_loadu_ps(w + i), _mm256_loadu_ps(x + i), s0);
    if (i < n) {
        const __mmask8 some = (__mmask8)((1u << (n - i)) - 1);
        s1 = _mm256_fmadd_ps(_mm256_maskz_loadu_ps(some, w + i), _mm256_maskz_loadu_ps(some, x + i),
                             s1);
    }
    *s01 = _mm512_insertf32x8(_mm512_castps256_ps512(s0), s1, 1);
}

/* out[r * stride_out + c] of W weight rows c and R activation rows r. */
INLINE void tile(const size_t W, const size_t R, const float *w, const float *x, size_t stride,
                 size_t k, float *out, size_t stride_out)
{
    __m512 sum[ROWS][WEIGHTS][2];
    for (size_t r = 0; r < R; r++)
        for (size_t c = 0; c < W; c++)
            sum[r][c][0] = sum[r][c][1] = _mm512_setzero_ps();
    size_t i = 0;
    for (; i + STEP <= k; i += STEP)
        for (size_t half = 0; half < 2; half++) {
            __m512 v[WEIGHTS];
            for (size_t c = 0; c < W; c++)
                v[c] = _mm512_loadu_ps(w + c * k + i + 16 * half);
            for (size_t r = 0; r < R; r++) {
                __m512 a = _mm512_loadu_ps(x + r * stride + i + 16 * half);
                /* Else GCC loads it again for each product, as an operand in memory. */
                __asm__("" : "+v"(a));
                for (size_t c = 0; c < W; c++)
                    sum[r][c][half] = _mm512_fmadd_ps(v[c], a, sum[r][c][half]);
            }
        }
    for (size_t r = 0; r < R; r++)
        for (size_t c = 0; c < W; c++) {
            if (i < k)
                add_rest(w + c * k + i, x + r * stride + i, k - i, &sum[r][c][0]);
            out[r * stride_out + c] = bz_sum_of_four(sum[r][c][0], sum[r][c][1]);
        }
}

INLINE void rows_of(const size_t R, const float *w, size_t count, const float *x, size_t stride,
                    size_t k, float *out, size_t stride_out)
{
    for (; count >= WEIGHTS; count -= WEIGHTS, w += WEIGHTS * k, out += WEIGHTS)
        tile(WEIGHTS, R, w, x, stride, k, out, stride_out);
    for (; count > 0; count--, w += k, out++)
        tile(1, R, w, x, stride, k, out, stride_out);
}

void bz_dot_tile_avx512(const float *w, size_t count, const float *x, size_t stride, size_t rows,
                        size_t k, float *out, size_t stride_out)
{
    for (; rows >= ROWS; rows -= ROWS, x += ROWS * stride, out += ROWS * stride_out)
        rows_of(ROWS, w, count, x, stride, k, out, stride_out);
    for (; rows > 0; rows--, x += stride, out += stride_out)
        rows_of(1, w, count, x, stride, k, out, stride_out);
}

#else
typedef int bz_no_avx512_dot_tile; /* ISO C requires a declaration */
#endif
