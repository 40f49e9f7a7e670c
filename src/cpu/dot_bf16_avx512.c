/* BF16 weights as they lie in the file by activations rounded to bf16, for AVX-512 BF16.
 *
 * vdpbf16ps adds two products to each of 16 sums: sum = fma(w1, x1, sum), then fma(w0, x0, sum),
 * where denormal inputs count as zero and denormal sums become zero whatever the thread's settings
 * are. Sum j takes values 2 j and 2 j + 1 of each step of 32, in turn; bz_sum_of_lanes adds the 16.
 * This order depends on K only. */
#if defined(__x86_64__)

#include <immintrin.h>

#include "cpu/kernels.h"

#define INLINE static inline __attribute__((always_inline))

enum {
    WEIGHTS = 4, /* weight rows and activation rows, whose 24 sums fit 32 registers */
    ROWS = 6,
    STEP = BZ_BF16_STEP,
    RUN = 1536, /* values that are multiplied before the next rows: 48 KB with those of 10 rows */
    BLOCK_ROWS = 24,
    BLOCK_WEIGHTS = BZ_BF16_TILE,
    AHEAD = 4096 /* bytes that are fetched early */
};

_Static_assert(BLOCK_ROWS *BLOCK_WEIGHTS * 16 == BZ_BF16_SUMS, "what callers reserve");

void bz_to_bf16_avx512(const float *x, uint16_t *out, size_t n)
{
    for (size_t i = 0; i < n; i += STEP) {
        const size_t rest = n - i < STEP ? n - i : STEP;
        const uint32_t some = rest < STEP ? (1u << rest) - 1 : UINT32_MAX;
        const __m512 low = _mm512_maskz_loadu_ps((__mmask16)some, x + i),
                     high = _mm512_maskz_loadu_ps((__mmask16)(some >> 16), x + i + 16);
        _mm512_storeu_si512(out + i, (__m512i)_mm512_cvtne2ps_pbh(high, low));
    }
}

/* Sums of four vectors. */
INLINE __m128 sums_of_lanes(__m512 a, __m512 b, __m512 c, __m512 d)
{
    const __m512 ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b)),
                 cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
    const __m512d low = _mm512_unpacklo_pd(_mm512_castps_pd(ab), _mm512_castps_pd(cd)),
                  high = _mm512_unpackhi_pd(_mm512_castps_pd(ab), _mm512_castps_pd(cd));
    const __m512 all = _mm512_add_ps(_mm512_castpd_ps(low), _mm512_castpd_ps(high));
    const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps(all, 1));
    return _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
}

/* A run of `n` values of rows of k: the first begins the sums, the last adds their lanes. */
typedef struct run {
    size_t k, n;
    bool first, last;
} run;

INLINE void add_step(const size_t W, const size_t R, __m512 sum[ROWS][WEIGHTS],
                     const __m512bh v[WEIGHTS], const uint16_t *x, size_t stride)
{
    for (size_t r = 0; r < R; r++) {
        __m512bh a = (__m512bh)_mm512_loadu_si512(x + r * stride);
        /* Else GCC loads it again for each product, as an operand in memory. */
        __asm__("" : "+v"(a));
        for (size_t c = 0; c < W; c++)
            sum[r][c] = _mm512_dpbf16_ps(sum[r][c], v[c], a);
    }
}

/* W weight rows c by R activation rows r: out[r * stride_out + c], or sums [r][c] of 16 lanes. */
INLINE void tile(const size_t W, const size_t R, const run *part, const uint8_t *w,
                 const uint16_t *x, size_t stride, float *sums, float *out, size_t stride_out)
{
    const size_t k = part->k, n = part->n;
    __m512 sum[ROWS][WEIGHTS];
    __m512bh v[WEIGHTS];
    for (size_t r = 0; r < R; r++)
        for (size_t c = 0; c < WEIGHTS; c++)
            sum[r][c] = part->first || c >= W ? _mm512_setzero_ps()
                                              : _mm512_load_ps(sums + 16 * (r * W + c));
    size_t i = 0;
    for (; i + STEP <= n; i += STEP) {
        for (size_t c = 0; c < W; c++) {
            const uint8_t *from = w + 2 * (c * k + i);
            if (W == 1) /* the next rows follow */
                _mm_prefetch((const char *)((uintptr_t)from + AHEAD), _MM_HINT_T0);
            v[c] = (__m512bh)_mm512_loadu_si512(from);
        }
        add_step(W, R, sum, v, x + i, stride);
    }
    if (i < n) {
        const __mmask32 some = (1u << (n - i)) - 1;
        for (size_t c = 0; c < W; c++)
            v[c] = (__m512bh)_mm512_maskz_loadu_epi16(some, w + 2 * (c * k + i));
        add_step(W, R, sum, v, x + i, stride);
    }
    for (size_t r = 0; r < R; r++) {
        if (part->last)
            _mm_mask_storeu_ps(out + r * stride_out, (__mmask8)((1u << W) - 1),
                               sums_of_lanes(sum[r][0], sum[r][1], sum[r][2], sum[r][3]));
        for (size_t c = 0; c < W && !part->last; c++)
            _mm512_store_ps(sums + 16 * (r * W + c), sum[r][c]);
    }
}

INLINE void rows_of(const size_t W, const size_t R, const run *part, const uint8_t *w, size_t count,
                    const uint16_t *x, size_t stride, float *sums, float *out, size_t stride_out)
{
    for (; count >= W; count -= W, w += 2 * W * part->k, out += W, sums += 16 * R * W)
        tile(W, R, part, w, x, stride, sums, out, stride_out);
    for (; count > 0; count--, w += 2 * part->k, out++, sums += 16 * R)
        tile(1, R, part, w, x, stride, sums, out, stride_out);
}

INLINE void up_to_six(const size_t W, const run *part, const uint8_t *w, size_t count,
                      const uint16_t *x, size_t stride, size_t rows, float *sums, float *out,
                      size_t stride_out)
{
    switch (rows) {
    case 1: rows_of(W, 1, part, w, count, x, stride, sums, out, stride_out); break;
    case 2: rows_of(W, 2, part, w, count, x, stride, sums, out, stride_out); break;
    case 3: rows_of(W, 3, part, w, count, x, stride, sums, out, stride_out); break;
    case 4: rows_of(W, 4, part, w, count, x, stride, sums, out, stride_out); break;
    case 5: rows_of(W, 5, part, w, count, x, stride, sums, out, stride_out); break;
    default: rows_of(W, ROWS, part, w, count, x, stride, sums, out, stride_out);
    }
}

/* Up to 24 activation rows by up to 48 weight rows, run by run. */
static void block(const uint8_t *w, size_t count, const uint16_t *x, size_t stride, size_t rows,
                  size_t k, float *sums, float *out, size_t stride_out)
{
    for (size_t i = 0; i < k; i += RUN) {
        const size_t n = k - i < RUN ? k - i : RUN;
        const run part = {k, n, i == 0, i + n == k};
        for (size_t r = 0; r < rows; r += ROWS) {
            up_to_six(WEIGHTS, &part, w + 2 * i, count, x + r * stride + i, stride,
                      rows - r < ROWS ? rows - r : ROWS, sums + 16 * r * count,
                      out + r * stride_out, stride_out);
        }
    }
}

void bz_dot_bf16_avx512(const void *w, size_t count, const uint16_t *x, size_t stride, size_t rows,
                        size_t k, float *sums, float *out, size_t stride_out)
{
    const uint8_t *bytes = w;
    if (rows <= ROWS) { /* memory is the limit: one weight row at a time, as they lie there */
        const run whole = {k, k, true, true};
        up_to_six(1, &whole, bytes, count, x, stride, rows, sums, out, stride_out);
        return;
    }
    for (size_t r = 0; r < rows; r += BLOCK_ROWS)
        for (size_t c = 0; c < count; c += BLOCK_WEIGHTS)
            block(bytes + 2 * c * k, count - c < BLOCK_WEIGHTS ? count - c : BLOCK_WEIGHTS,
                  x + r * stride, stride, rows - r < BLOCK_ROWS ? rows - r : BLOCK_ROWS, k, sums,
                  out + r * stride_out + c, stride_out);
}

#else
typedef int bz_no_avx512_bf16; /* ISO C requires a declaration */
#endif
