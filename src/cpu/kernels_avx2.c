/* The kernels for x86-64 with AVX2, FMA and F16C.
 *
 * Tails shorter than a vector are loaded with a mask, which reads zeros: one more step of the same
 * sums, so that the order of additions depends on the length only. */
#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#include "base/os.h"
#include "cpu/exp.h"
#include "cpu/kernels.h"
#include "cpu/products.h"
#include "cpu/unpack.h"
#include "file/blocks.h"

#define INLINE static inline __attribute__((always_inline))

/* All bits set in the first n of 8 lanes. */
INLINE __m256i first_lanes(size_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

INLINE float sum_lanes(__m256 v)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

INLINE __m256 halves8(const uint16_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}

/* n < 8 values, the other lanes zero. */
INLINE __m256 few_halves(const uint16_t *p, size_t n)
{
    uint16_t buffer[8] = {0};
    memcpy(buffer, p, n * sizeof *p);
    return halves8(buffer);
}

/* ---- f32 ---- */

/* R rows at once, four sums of eight lanes per row: three rows fit 16 registers. */
INLINE void dot_rows(const float *w, const float *x, size_t stride, const size_t R, size_t k,
                     float *out)
{
    __m256 sum[3][4];
    for (size_t r = 0; r < R; r++)
        for (size_t a = 0; a < 4; a++)
            sum[r][a] = _mm256_setzero_ps();
    size_t i = 0;
    for (; i + 32 <= k; i += 32)
        for (size_t a = 0; a < 4; a++) {
            __m256 v = _mm256_loadu_ps(w + i + 8 * a);
            for (size_t r = 0; r < R; r++)
                sum[r][a] =
                    _mm256_fmadd_ps(v, _mm256_loadu_ps(x + r * stride + i + 8 * a), sum[r][a]);
        }
    for (; i + 8 <= k; i += 8) {
        __m256 v = _mm256_loadu_ps(w + i);
        for (size_t r = 0; r < R; r++)
            sum[r][0] = _mm256_fmadd_ps(v, _mm256_loadu_ps(x + r * stride + i), sum[r][0]);
    }
    if (i < k) {
        __m256i mask = first_lanes(k - i);
        __m256 v = _mm256_maskload_ps(w + i, mask);
        for (size_t r = 0; r < R; r++)
            sum[r][1] = _mm256_fmadd_ps(v, _mm256_maskload_ps(x + r * stride + i, mask), sum[r][1]);
    }
    for (size_t r = 0; r < R; r++)
        out[r] = sum_lanes(_mm256_add_ps(_mm256_add_ps(sum[r][0], sum[r][1]),
                                         _mm256_add_ps(sum[r][2], sum[r][3])));
}

static void dot(const float *w, const float *x, size_t stride, size_t rows, size_t k, float *out)
{
    for (; rows >= 3; rows -= 3, x += 3 * stride, out += 3)
        dot_rows(w, x, stride, 3, k, out);
    for (; rows > 0; rows--, x += stride, out++)
        dot_rows(w, x, stride, 1, k, out);
}

enum { TILE_WEIGHTS = 3, TILE_ROWS = 2 /* whose 12 sums fit 16 registers */ };

/* Sums `first` and `first` + 1 of dot_rows for W weight rows and R activation rows, added. The
 * first two take what is left after whole steps of 32. */
INLINE void half_tile(const size_t W, const size_t R, const float *w, const float *x, size_t stride,
                      size_t k, const size_t first, __m256 half[TILE_ROWS][TILE_WEIGHTS])
{
    __m256 sum[TILE_ROWS][TILE_WEIGHTS][2];
    for (size_t r = 0; r < R; r++)
        for (size_t c = 0; c < W; c++)
            sum[r][c][0] = sum[r][c][1] = _mm256_setzero_ps();
    size_t i = 0;
    for (; i + 32 <= k; i += 32)
        for (size_t a = 0; a < 2; a++) {
            const size_t at = i + 8 * (first + a);
            __m256 v[TILE_WEIGHTS];
            for (size_t c = 0; c < W; c++)
                v[c] = _mm256_loadu_ps(w + c * k + at);
            for (size_t r = 0; r < R; r++) {
                __m256 y = _mm256_loadu_ps(x + r * stride + at);
                for (size_t c = 0; c < W; c++)
                    sum[r][c][a] = _mm256_fmadd_ps(v[c], y, sum[r][c][a]);
            }
        }
    for (; first == 0 && i + 8 <= k; i += 8)
        for (size_t r = 0; r < R; r++)
            for (size_t c = 0; c < W; c++)
                sum[r][c][0] = _mm256_fmadd_ps(_mm256_loadu_ps(w + c * k + i),
                                               _mm256_loadu_ps(x + r * stride + i), sum[r][c][0]);
    if (first == 0 && i < k) {
        const __m256i mask = first_lanes(k - i);
        for (size_t r = 0; r < R; r++)
            for (size_t c = 0; c < W; c++)
                sum[r][c][1] =
                    _mm256_fmadd_ps(_mm256_maskload_ps(w + c * k + i, mask),
                                    _mm256_maskload_ps(x + r * stride + i, mask), sum[r][c][1]);
    }
    for (size_t r = 0; r < R; r++)
        for (size_t c = 0; c < W; c++)
            half[r][c] = _mm256_add_ps(sum[r][c][0], sum[r][c][1]);
}

/* Two passes over the rows: of each two lines of 64 bytes, one takes the first. */
INLINE void tile(const size_t W, const size_t R, const float *w, const float *x, size_t stride,
                 size_t k, float *out, size_t stride_out)
{
    __m256 first[TILE_ROWS][TILE_WEIGHTS], second[TILE_ROWS][TILE_WEIGHTS];
    half_tile(W, R, w, x, stride, k, 0, first);
    half_tile(W, R, w, x, stride, k, 2, second);
    for (size_t r = 0; r < R; r++)
        for (size_t c = 0; c < W; c++)
            out[r * stride_out + c] = sum_lanes(_mm256_add_ps(first[r][c], second[r][c]));
}

INLINE void tiles(const size_t R, const float *w, size_t count, const float *x, size_t stride,
                  size_t k, float *out, size_t stride_out)
{
    for (; count >= TILE_WEIGHTS; count -= TILE_WEIGHTS, w += TILE_WEIGHTS * k, out += TILE_WEIGHTS)
        tile(TILE_WEIGHTS, R, w, x, stride, k, out, stride_out);
    for (; count > 0; count--, w += k, out++)
        tile(1, R, w, x, stride, k, out, stride_out);
}

static void dot_tile(const float *w, size_t count, const float *x, size_t stride, size_t rows,
                     size_t k, float *out, size_t stride_out)
{
    for (; rows >= TILE_ROWS;
         rows -= TILE_ROWS, x += TILE_ROWS * stride, out += TILE_ROWS * stride_out)
        tiles(TILE_ROWS, w, count, x, stride, k, out, stride_out);
    if (rows)
        tiles(1, w, count, x, stride, k, out, stride_out);
}

static void axpy(float a, const float *v, float *out, size_t n)
{
    __m256 factor = _mm256_set1_ps(a);
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(out + i,
                         _mm256_fmadd_ps(factor, _mm256_loadu_ps(v + i), _mm256_loadu_ps(out + i)));
    if (i < n) {
        __m256i mask = first_lanes(n - i);
        __m256 old = _mm256_maskload_ps(out + i, mask);
        _mm256_maskstore_ps(out + i, mask,
                            _mm256_fmadd_ps(factor, _mm256_maskload_ps(v + i, mask), old));
    }
}

/* ---- f16 ---- */

static float dot_f16(const float *q, const uint16_t *k, size_t n)
{
    __m256 sum[4];
    for (size_t a = 0; a < 4; a++)
        sum[a] = _mm256_setzero_ps();
    size_t i = 0;
    for (; i + 32 <= n; i += 32)
        for (size_t a = 0; a < 4; a++)
            sum[a] =
                _mm256_fmadd_ps(_mm256_loadu_ps(q + i + 8 * a), halves8(k + i + 8 * a), sum[a]);
    for (; i + 8 <= n; i += 8)
        sum[0] = _mm256_fmadd_ps(_mm256_loadu_ps(q + i), halves8(k + i), sum[0]);
    if (i < n)
        sum[1] = _mm256_fmadd_ps(_mm256_maskload_ps(q + i, first_lanes(n - i)),
                                 few_halves(k + i, n - i), sum[1]);
    return sum_lanes(_mm256_add_ps(_mm256_add_ps(sum[0], sum[1]), _mm256_add_ps(sum[2], sum[3])));
}

INLINE __m256 bf16_8(const uint16_t *p)
{
    const __m256i words = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(words, 16));
}

typedef __m256 (*load_eight)(const uint16_t *p);

/* As dot_rows. Weights come from memory in order: they are fetched before they are needed. */
INLINE float dot_fetched(const load_eight load, const uint16_t *w, const float *x, size_t k)
{
    enum { AHEAD = 4096 };
    __m256 sum[4];
    for (size_t a = 0; a < 4; a++)
        sum[a] = _mm256_setzero_ps();
    size_t i = 0;
    for (; i + 32 <= k; i += 32) {
        _mm_prefetch((const char *)((uintptr_t)(w + i) + AHEAD), _MM_HINT_T0);
        for (size_t a = 0; a < 4; a++)
            sum[a] = _mm256_fmadd_ps(load(w + i + 8 * a), _mm256_loadu_ps(x + i + 8 * a), sum[a]);
    }
    for (; i + 8 <= k; i += 8)
        sum[0] = _mm256_fmadd_ps(load(w + i), _mm256_loadu_ps(x + i), sum[0]);
    if (i < k) {
        uint16_t rest[8] = {0};
        memcpy(rest, w + i, (k - i) * sizeof *w);
        sum[1] = _mm256_fmadd_ps(load(rest), _mm256_maskload_ps(x + i, first_lanes(k - i)), sum[1]);
    }
    return sum_lanes(_mm256_add_ps(_mm256_add_ps(sum[0], sum[1]), _mm256_add_ps(sum[2], sum[3])));
}

static float dot_halves(bz_type type, const void *w, const float *x, size_t k)
{
    return type == BZ_F16 ? dot_fetched(halves8, w, x, k) : dot_fetched(bf16_8, w, x, k);
}

static void axpy_f16(float a, const uint16_t *v, float *out, size_t n)
{
    __m256 factor = _mm256_set1_ps(a);
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(out + i,
                         _mm256_fmadd_ps(factor, halves8(v + i), _mm256_loadu_ps(out + i)));
    if (i < n) {
        __m256i mask = first_lanes(n - i);
        __m256 old = _mm256_maskload_ps(out + i, mask);
        _mm256_maskstore_ps(out + i, mask, _mm256_fmadd_ps(factor, few_halves(v + i, n - i), old));
    }
}

static void to_f16(const float *x, uint16_t *out, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(out + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
    if (i < n) {
        uint16_t buffer[8];
        __m256 last = _mm256_maskload_ps(x + i, first_lanes(n - i));
        _mm_storeu_si128((__m128i *)buffer, _mm256_cvtps_ph(last, _MM_FROUND_TO_NEAREST_INT));
        memcpy(out + i, buffer, (n - i) * sizeof *out);
    }
}

/* ---- towers ---- */

/* R rows by 16 columns: six rows have 12 sums; 2 loads and 6 broadcasts feed 12 multiply-adds. */
INLINE void panel_rows(const float *a, size_t stride_a, const size_t R, const float *b, size_t k,
                       float *out, size_t stride_out, size_t cols, bool add)
{
    __m256 sum[6][2];
    for (size_t r = 0; r < R; r++)
        sum[r][0] = sum[r][1] = _mm256_setzero_ps();
    for (size_t i = 0; i < k; i++, b += BZ_PANEL) {
        __m256 low = _mm256_loadu_ps(b), high = _mm256_loadu_ps(b + 8);
        for (size_t r = 0; r < R; r++) {
            __m256 v = _mm256_broadcast_ss(a + r * stride_a + i);
            sum[r][0] = _mm256_fmadd_ps(v, low, sum[r][0]);
            sum[r][1] = _mm256_fmadd_ps(v, high, sum[r][1]);
        }
    }
    if (add) {
        const __m256i first = first_lanes(cols), rest = first_lanes(cols > 8 ? cols - 8 : 0);
        for (size_t r = 0; r < R; r++) {
            sum[r][0] = _mm256_add_ps(_mm256_maskload_ps(out + r * stride_out, first), sum[r][0]);
            sum[r][1] =
                _mm256_add_ps(_mm256_maskload_ps(out + r * stride_out + 8, rest), sum[r][1]);
        }
    }
    if (cols == BZ_PANEL) {
        for (size_t r = 0; r < R; r++) {
            _mm256_storeu_ps(out + r * stride_out, sum[r][0]);
            _mm256_storeu_ps(out + r * stride_out + 8, sum[r][1]);
        }
        return;
    }
    const __m256i first = first_lanes(cols), rest = first_lanes(cols > 8 ? cols - 8 : 0);
    for (size_t r = 0; r < R; r++) {
        _mm256_maskstore_ps(out + r * stride_out, first, sum[r][0]);
        _mm256_maskstore_ps(out + r * stride_out + 8, rest, sum[r][1]);
    }
}

static void panel_run(const float *a, size_t stride_a, size_t rows, const float *b, size_t k,
                      float *out, size_t stride_out, size_t cols, bool add)
{
    for (; rows >= 6; rows -= 6, a += 6 * stride_a, out += 6 * stride_out)
        panel_rows(a, stride_a, 6, b, k, out, stride_out, cols, add);
    for (; rows >= 2; rows -= 2, a += 2 * stride_a, out += 2 * stride_out)
        panel_rows(a, stride_a, 2, b, k, out, stride_out, cols, add);
    if (rows)
        panel_rows(a, stride_a, 1, b, k, out, stride_out, cols, add);
}

/* bz_exp of eight values. Of two operands of which one is NaN, min and max return the second. */
INLINE __m256 exp8(__m256 x)
{
    x = _mm256_min_ps(_mm256_set1_ps(BZ_EXP_HIGHEST),
                      _mm256_max_ps(_mm256_set1_ps(BZ_EXP_LOWEST), x));
    __m256 n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(BZ_EXP_LOG2E)),
                               _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(BZ_EXP_LN2_HIGH), x);
    r = _mm256_fnmadd_ps(n, _mm256_set1_ps(BZ_EXP_LN2_LOW), r);
    __m256 p = _mm256_set1_ps(BZ_EXP_C5);
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(BZ_EXP_C4));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(BZ_EXP_C3));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(BZ_EXP_C2));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(BZ_EXP_C1));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(BZ_EXP_C0));
    p = _mm256_add_ps(_mm256_fmadd_ps(p, _mm256_mul_ps(r, r), r), _mm256_set1_ps(1.0f));
    __m256i power =
        _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23);
    return _mm256_mul_ps(p, _mm256_castsi256_ps(power));
}

static float exp_sum(float *x, size_t n)
{
    float high = x[0];
    size_t i = 0;
    if (n >= 8) {
        __m256 max = _mm256_loadu_ps(x);
        for (i = 8; i + 8 <= n; i += 8)
            max = _mm256_max_ps(max, _mm256_loadu_ps(x + i));
        __m128 m = _mm_max_ps(_mm256_castps256_ps128(max), _mm256_extractf128_ps(max, 1));
        m = _mm_max_ps(m, _mm_movehl_ps(m, m));
        high = _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
    }
    for (; i < n; i++)
        high = x[i] > high ? x[i] : high;
    const __m256 top = _mm256_set1_ps(high);
    __m256 sum = _mm256_setzero_ps();
    for (i = 0; i + 8 <= n; i += 8) {
        __m256 e = exp8(_mm256_sub_ps(_mm256_loadu_ps(x + i), top));
        _mm256_storeu_ps(x + i, e);
        sum = _mm256_add_ps(sum, e);
    }
    if (i < n) {
        const __m256i mask = first_lanes(n - i);
        __m256 e = exp8(_mm256_sub_ps(_mm256_maskload_ps(x + i, mask), top));
        e = _mm256_and_ps(e, _mm256_castsi256_ps(mask));
        _mm256_maskstore_ps(x + i, mask, e);
        sum = _mm256_add_ps(sum, e);
    }
    return sum_lanes(sum);
}

INLINE __m256 sigmoid_times(__m256 x, __m256 angle)
{
    return _mm256_div_ps(
        x, _mm256_add_ps(_mm256_set1_ps(1.0f), exp8(_mm256_sub_ps(_mm256_setzero_ps(), angle))));
}

INLINE __m256 gelu8(__m256 g, __m256 u)
{
    __m256 cubic =
        _mm256_fmadd_ps(_mm256_mul_ps(g, g), _mm256_set1_ps(BZ_GELU_CUBIC), _mm256_set1_ps(1.0f));
    return sigmoid_times(_mm256_mul_ps(g, u),
                         _mm256_mul_ps(_mm256_mul_ps(_mm256_set1_ps(BZ_GELU_SCALE), g), cubic));
}

static void gelu_mul(const float *gate, const float *up, float *out, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(out + i, gelu8(_mm256_loadu_ps(gate + i), _mm256_loadu_ps(up + i)));
    if (i < n) {
        const __m256i mask = first_lanes(n - i);
        _mm256_maskstore_ps(
            out + i, mask,
            gelu8(_mm256_maskload_ps(gate + i, mask), _mm256_maskload_ps(up + i, mask)));
    }
}

static void silu(const float *x, float *out, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 v = _mm256_loadu_ps(x + i);
        _mm256_storeu_ps(out + i, sigmoid_times(v, v));
    }
    if (i < n) {
        const __m256i mask = first_lanes(n - i);
        __m256 v = _mm256_maskload_ps(x + i, mask);
        _mm256_maskstore_ps(out + i, mask, sigmoid_times(v, v));
    }
}

/* bz_tanh_small */
INLINE __m256 tanh_small8(__m256 y)
{
    static const float terms[] = {BZ_TANH_T11, BZ_TANH_T9, BZ_TANH_T7, BZ_TANH_T5, BZ_TANH_T3};
    const __m256 s = _mm256_mul_ps(y, y);
    __m256 p = _mm256_set1_ps(BZ_TANH_T13);
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++)
        p = _mm256_fmadd_ps(p, s, _mm256_set1_ps(terms[i]));
    return _mm256_fmadd_ps(y, _mm256_mul_ps(p, s), y);
}

INLINE __m256 softcap8(__m256 x, float cap)
{
    const __m256 y = _mm256_mul_ps(x, _mm256_set1_ps(1.0f / cap));
    const __m256 size = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), y);
    const __m256 large = _mm256_sub_ps(
        _mm256_set1_ps(cap),
        _mm256_div_ps(_mm256_set1_ps(2.0f * cap),
                      _mm256_add_ps(_mm256_set1_ps(1.0f), exp8(_mm256_add_ps(y, y)))));
    return _mm256_blendv_ps(large, _mm256_mul_ps(_mm256_set1_ps(cap), tanh_small8(y)),
                            _mm256_cmp_ps(size, _mm256_set1_ps(BZ_TANH_SMALL), _CMP_LT_OQ));
}

static void softcap(const float *x, float cap, float *out, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(out + i, softcap8(_mm256_loadu_ps(x + i), cap));
    if (i < n) {
        const __m256i mask = first_lanes(n - i);
        _mm256_maskstore_ps(out + i, mask, softcap8(_mm256_maskload_ps(x + i, mask), cap));
    }
}

/* ---- int8: activations ---- */

INLINE uint32_t largest_lane(__m256i v)
{
    __m128i m = _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4E));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xB1));
    return (uint32_t)_mm_cvtsi128_si32(m);
}

/* Rounds ties away from zero, as explained in kernels_plain.c. */
INLINE __m256i round_away(__m256 v)
{
    __m256 sign = _mm256_and_ps(v, _mm256_set1_ps(-0.0f));
    return _mm256_cvttps_epi32(
        _mm256_add_ps(v, _mm256_or_ps(sign, _mm256_set1_ps(0x1.FFFFFEp-2f))));
}

/* Bit-equal to the plain kernel. */
static void quantize(const float *x, bz_q8 out, size_t n)
{
    const __m256i magnitude = _mm256_set1_epi32(0x7FFFFFFF);
    for (size_t g = 0; g < n / 32; g++) {
        __m256 v[4];
        __m256i bits[4];
        for (size_t j = 0; j < 4; j++) {
            v[j] = _mm256_loadu_ps(x + 32 * g + 8 * j);
            bits[j] = _mm256_and_si256(_mm256_castps_si256(v[j]), magnitude);
        }
        uint32_t largest = largest_lane(_mm256_max_epi32(_mm256_max_epi32(bits[0], bits[1]),
                                                         _mm256_max_epi32(bits[2], bits[3])));
        if (largest >= 0x7F800000u || largest < 27u << 23) { /* not finite, or rounded to zero */
            float d = _mm_cvtss_f32(
                _mm_castsi128_ps(_mm_cvtsi32_si128(largest >= 0x7F800000u ? 0x7FC00000 : 0)));
            memset(out.q + 32 * g, 0, 32);
            out.d[g] = out.sum[2 * g] = out.sum[2 * g + 1] = d;
            continue;
        }
        float max = _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128((int)largest))),
              d = max / 127.0f;
        __m256 inverse = _mm256_set1_ps(127.0f / max);
        __m256i r[4];
        for (size_t j = 0; j < 4; j++)
            r[j] = round_away(_mm256_mul_ps(v[j], inverse));
        /* Packing works within 128-bit lanes; the last shuffle restores the order of the groups of
         * four bytes. */
        __m256i bytes =
            _mm256_packs_epi16(_mm256_packs_epi32(r[0], r[1]), _mm256_packs_epi32(r[2], r[3]));
        bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
        _mm256_storeu_si256((__m256i *)(out.q + 32 * g), bytes);
        out.d[g] = d;

        /* Sums of 16 values: lower and upper 128-bit lane. maddubs with ones as unsigned operand.
         */
        __m256i sum = _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes),
                                        _mm256_set1_epi16(1));
        sum = _mm256_add_epi32(sum, _mm256_shuffle_epi32(sum, 0x4E));
        sum = _mm256_add_epi32(sum, _mm256_shuffle_epi32(sum, 0xB1));
        out.sum[2 * g] = d * (float)_mm256_extract_epi32(sum, 0);
        out.sum[2 * g + 1] = d * (float)_mm256_extract_epi32(sum, 4);
    }
}

/* ---- int8: products ---- */

/* Exact products of 32 pairs in eight sums of four: lanes 0..3 are the first 16 values, 4..7 the
 * second. maddubs needs one unsigned operand: where weights may be negative, their sign is moved
 * to the activations. 2 * 128 * 127 fits 16 bits. */
INLINE __m256i products32(__m256i w, __m256i magnitude, __m256i x, const bool is_signed)
{
    __m256i pairs = _mm256_maddubs_epi16(magnitude, is_signed ? _mm256_sign_epi8(x, w) : x);
    return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

/* R rows at once, 128 values per iteration. Group t of 32 is added to sum t % 2, the minima to a
 * third sum: this shortens the dependency chains. */
INLINE void dot8_rows(bz_w8 w, const bool has_min, const bz_q8 *x, const size_t R, size_t k,
                      float *out)
{
    const bool is_signed = !has_min;
    const __m256i even_then_odd = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
    __m256 sum[4][3];
    for (size_t r = 0; r < R; r++)
        for (size_t a = 0; a < 3; a++)
            sum[r][a] = _mm256_setzero_ps();

    size_t i = 0;
    for (; i + 128 <= k; i += 128) {
        /* Scales of the first 16 values in the lower 128 bits, of the second 16 in the upper. */
        __m256 s = _mm256_permutevar8x32_ps(_mm256_loadu_ps(w.s + i / 16), even_then_odd);
        __m256 scale[4];
        for (size_t r = 0; r < R; r++)
            scale[r] = _mm256_mul_ps(
                s, _mm256_broadcast_ps((const __m128 *)(const void *)(x[r].d + i / 32)));
#define GROUP(t)                                                                                   \
    do {                                                                                           \
        __m256i q = _mm256_loadu_si256((const __m256i *)(w.q + i + 32 * (t)));                     \
        __m256i magnitude = is_signed ? _mm256_abs_epi8(q) : q;                                    \
        for (size_t r = 0; r < R; r++) {                                                           \
            __m256i v = _mm256_loadu_si256((const __m256i *)(x[r].q + i + 32 * (t)));              \
            __m256 p = _mm256_cvtepi32_ps(products32(q, magnitude, v, is_signed));                 \
            sum[r][(t) % 2] =                                                                      \
                _mm256_fmadd_ps(p, _mm256_permute_ps(scale[r], 0x55 * (t)), sum[r][(t) % 2]);      \
        }                                                                                          \
    } while (0)
        GROUP(0);
        GROUP(1);
        GROUP(2);
        GROUP(3);
#undef GROUP
        if (has_min) {
            __m256 m = _mm256_loadu_ps(w.m + i / 16);
            for (size_t r = 0; r < R; r++)
                sum[r][2] = _mm256_fnmadd_ps(m, _mm256_loadu_ps(x[r].sum + i / 16), sum[r][2]);
        }
    }

    if (has_min && i < k) {
        __m256i mask = first_lanes((k - i) / 16);
        __m256 m = _mm256_maskload_ps(w.m + i / 16, mask);
        for (size_t r = 0; r < R; r++)
            sum[r][2] = _mm256_fnmadd_ps(m, _mm256_maskload_ps(x[r].sum + i / 16, mask), sum[r][2]);
    }
    for (; i < k; i += 32) {
        __m256i q = _mm256_loadu_si256((const __m256i *)(w.q + i));
        __m256i magnitude = is_signed ? _mm256_abs_epi8(q) : q;
        __m256 s = _mm256_set_m128(_mm_set1_ps(w.s[i / 16 + 1]), _mm_set1_ps(w.s[i / 16]));
        for (size_t r = 0; r < R; r++) {
            __m256i v = _mm256_loadu_si256((const __m256i *)(x[r].q + i));
            __m256 p = _mm256_cvtepi32_ps(products32(q, magnitude, v, is_signed));
            sum[r][0] =
                _mm256_fmadd_ps(p, _mm256_mul_ps(s, _mm256_set1_ps(x[r].d[i / 32])), sum[r][0]);
        }
    }
    for (size_t r = 0; r < R; r++)
        out[r] = sum_lanes(_mm256_add_ps(_mm256_add_ps(sum[r][0], sum[r][1]), sum[r][2]));
}

/* ---- int8: weights ---- */

INLINE float half_at(const uint8_t *p)
{
    return _cvtsh_ss(bz_le16(p));
}

INLINE void store32(int8_t *q, __m256i v)
{
    _mm256_storeu_si256((__m256i *)q, v);
}

INLINE __m256i load32(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

INLINE void set2(float *p, float v)
{
    p[0] = p[1] = v;
}

/* p[0..16) = d * bytes, as int8. */
INLINE void scale16(float *p, float d, __m128i bytes)
{
    __m256 factor = _mm256_set1_ps(d);
    __m256 a = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
    __m256 b = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8)));
    _mm256_storeu_ps(p, _mm256_mul_ps(factor, a));
    _mm256_storeu_ps(p + 8, _mm256_mul_ps(factor, b));
}

/* Each of eight bytes twice: a group of 32 values has two scales, one per 16. */
INLINE __m128i twice(uint32_t first, uint32_t last)
{
    __m128i v = _mm_cvtsi64_si128((long long)((uint64_t)last << 32 | first));
    return _mm_unpacklo_epi8(v, v);
}

INLINE __m256i low_bits(__m256i v, int mask)
{
    return _mm256_and_si256(v, _mm256_set1_epi8((char)mask));
}

/* 16 bytes to 32 nibbles, the low ones first. */
INLINE __m256i nibbles(const uint8_t *bytes)
{
    __m128i v = _mm_loadu_si128((const __m128i *)bytes);
    return low_bits(_mm256_set_m128i(_mm_srli_epi16(v, 4), v), 15);
}

/* 16 in every byte whose bit is set in the 32 bits at p. */
INLINE __m256i fifth_bits(const uint8_t *p)
{
    const __m256i spread = _mm256_setr_epi64x(0x0000000000000000, 0x0101010101010101,
                                              0x0202020202020202, 0x0303030303030303);
    const __m256i select = _mm256_set1_epi64x((long long)0x8040201008040201u);
    __m256i v = _mm256_shuffle_epi8(_mm256_set1_epi32((int)bz_le32(p)), spread);
    return low_bits(_mm256_cmpeq_epi8(_mm256_and_si256(v, select), select), 16);
}

INLINE __m256i look_up(__m128i table, __m256i nibble)
{
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), nibble);
}

INLINE void q8_0(const bz_block_q8_0 *b, bz_w8 w)
{
    set2(w.s, half_at(b->d));
    store32(w.q, load32(b->q));
}

INLINE void q4_0(const bz_block_q4_0 *b, bz_w8 w)
{
    set2(w.s, half_at(b->d));
    store32(w.q, _mm256_sub_epi8(nibbles(b->q), _mm256_set1_epi8(8)));
}

INLINE void q4_1(const bz_block_q4_1 *b, bz_w8 w)
{
    set2(w.s, half_at(b->d));
    set2(w.m, -half_at(b->m));
    store32(w.q, nibbles(b->q));
}

INLINE void q5_0(const bz_block_q5_0 *b, bz_w8 w)
{
    set2(w.s, half_at(b->d));
    store32(w.q, _mm256_sub_epi8(_mm256_or_si256(nibbles(b->q), fifth_bits(b->high)),
                                 _mm256_set1_epi8(16)));
}

INLINE void q5_1(const bz_block_q5_1 *b, bz_w8 w)
{
    set2(w.s, half_at(b->d));
    set2(w.m, -half_at(b->m));
    store32(w.q, _mm256_or_si256(nibbles(b->q), fifth_bits(b->high)));
}

INLINE void iq4_nl(const bz_block_q4_0 *b, bz_w8 w)
{
    set2(w.s, half_at(b->d));
    store32(w.q, look_up(_mm_setr_epi8(BZ_IQ4_VALUES), nibbles(b->q)));
}

INLINE void mxfp4(const bz_block_mxfp4 *b, bz_w8 w)
{
    set2(w.s, _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128((int)bz_mxfp4_scale_bits(b->e)))));
    store32(w.q, look_up(_mm_setr_epi8(BZ_MXFP4_VALUES), nibbles(b->q)));
}

INLINE void q2_k(const bz_block_q2_k *b, bz_w8 w)
{
    __m128i scales = _mm_loadu_si128((const __m128i *)b->scales), nibble = _mm_set1_epi8(15);
    scale16(w.s, half_at(b->d), _mm_and_si128(scales, nibble));
    scale16(w.m, half_at(b->dmin), _mm_and_si128(_mm_srli_epi16(scales, 4), nibble));
    for (int n = 0; n < 2; n++) {
        __m256i v = load32(b->q + 32 * n);
        for (int r = 0; r < 4; r++)
            store32(w.q + 128 * n + 32 * r, low_bits(_mm256_srli_epi16(v, 2 * r), 3));
    }
}

INLINE void q3_k(const bz_block_q3_k *b, bz_w8 w)
{
    uint32_t scales[4];
    bz_q3_k_scales(b->scales, scales);
    __m128i bytes = _mm_setr_epi32((int)scales[0], (int)scales[1], (int)scales[2], (int)scales[3]);
    scale16(w.s, half_at(b->d), _mm_sub_epi8(bytes, _mm_set1_epi8(32)));
    __m256i high = load32(b->high), four = _mm256_set1_epi8(4);
    for (int n = 0; n < 2; n++) {
        __m256i v = load32(b->q + 32 * n);
        for (int r = 0; r < 4; r++) {
            __m256i low = low_bits(_mm256_srli_epi16(v, 2 * r), 3);
            __m256i third = low_bits(_mm256_slli_epi16(_mm256_srli_epi16(high, 4 * n + r), 2), 4);
            store32(w.q + 128 * n + 32 * r, _mm256_sub_epi8(_mm256_or_si256(low, third), four));
        }
    }
}

INLINE void scales_q4_k(const uint8_t *d, const uint8_t *dmin, const uint8_t *bytes, bz_w8 w)
{
    uint32_t scales[2], minima[2];
    bz_q4_k_scales(bytes, scales, minima);
    scale16(w.s, half_at(d), twice(scales[0], scales[1]));
    scale16(w.m, half_at(dmin), twice(minima[0], minima[1]));
}

INLINE void q4_k(const bz_block_q4_k *b, bz_w8 w)
{
    scales_q4_k(b->d, b->dmin, b->scales, w);
    for (int c = 0; c < 4; c++) {
        __m256i v = load32(b->q + 32 * c);
        store32(w.q + 64 * c, low_bits(v, 15));
        store32(w.q + 64 * c + 32, low_bits(_mm256_srli_epi16(v, 4), 15));
    }
}

INLINE void q5_k(const bz_block_q5_k *b, bz_w8 w)
{
    scales_q4_k(b->d, b->dmin, b->scales, w);
    __m256i high = load32(b->high); /* bit g of byte l belongs to value 32g + l */
    for (int c = 0; c < 4; c++) {
        __m256i v = load32(b->q + 32 * c), two = _mm256_srli_epi16(high, 2 * c);
        __m256i even = low_bits(_mm256_slli_epi16(two, 4), 16),
                odd = low_bits(_mm256_slli_epi16(two, 3), 16);
        store32(w.q + 64 * c, _mm256_or_si256(low_bits(v, 15), even));
        store32(w.q + 64 * c + 32, _mm256_or_si256(low_bits(_mm256_srli_epi16(v, 4), 15), odd));
    }
}

INLINE void q6_k(const bz_block_q6_k *b, bz_w8 w)
{
    scale16(w.s, half_at(b->d), _mm_loadu_si128((const __m128i *)b->scales));
    __m256i offset = _mm256_set1_epi8(32);
    for (int n = 0; n < 2; n++) {
        __m256i high = load32(b->high + 32 * n);
        for (int r = 0; r < 4; r++) {
            __m256i low = load32(b->low + 64 * n + 32 * (r & 1));
            low = low_bits(r < 2 ? low : _mm256_srli_epi16(low, 4), 15);
            __m256i top = low_bits(_mm256_slli_epi16(_mm256_srli_epi16(high, 2 * r), 4), 48);
            store32(w.q + 128 * n + 32 * r, _mm256_sub_epi8(_mm256_or_si256(low, top), offset));
        }
    }
}

INLINE void iq4_xs(const bz_block_iq4_xs *b, bz_w8 w)
{
    uint32_t scales[2];
    bz_iq4_xs_scales(b, scales);
    scale16(w.s, half_at(b->d), _mm_sub_epi8(twice(scales[0], scales[1]), _mm_set1_epi8(32)));
    __m128i table = _mm_setr_epi8(BZ_IQ4_VALUES);
    for (int g = 0; g < 8; g++)
        store32(w.q + 32 * g, look_up(table, nibbles(b->q + 16 * g)));
}

#include "cpu/unpack_each.h"

/* ---- dequantization ---- */

/* s * q - m, each operation rounded: no fused multiply-add. */
INLINE void expand(bz_w8 w, const bool has_min, float *out, size_t n)
{
    for (size_t i = 0; i < n; i += 8) {
        __m256i q = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(w.q + i)));
        __m256 v = _mm256_mul_ps(_mm256_set1_ps(w.s[i / 16]), _mm256_cvtepi32_ps(q));
        if (has_min)
            v = _mm256_sub_ps(v, _mm256_set1_ps(w.m[i / 16]));
        _mm256_storeu_ps(out + i, v);
    }
}

static void dequantize_f16(const uint8_t *bytes, float *out, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(out + i,
                         _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(bytes + 2 * i))));
    for (; i < n; i++)
        out[i] = half_at(bytes + 2 * i);
}

static void dequantize_bf16(const uint8_t *bytes, float *out, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(out + i, bf16_8((const uint16_t *)(const void *)(bytes + 2 * i)));
    for (; i < n; i++)
        out[i] = bz_bf16_to_f32(bz_le16(bytes + 2 * i));
}

#include "cpu/kernels_table.h"

KERNEL_TABLE(bz_kernels_avx2, "avx2", .products = &bz_products_avx2, .dot_tile = dot_tile,
             .dot_halves = dot_halves);
KERNEL_TABLE(bz_kernels_avxvnni, "avxvnni", .products = &bz_products_avxvnni, .dot_tile = dot_tile,
             .dot_halves = dot_halves);
/* The other f32 kernels are the same: their loops are bound by loads. */
#define WITH_512_BITS                                                                              \
    .dot_halves = dot_halves, .dot_tile = bz_dot_tile_avx512, .scores_f16 = bz_scores_f16_avx512,  \
    .values_f16 = bz_values_f16_avx512
#define WITH_BF16 WITH_512_BITS, .to_bf16 = bz_to_bf16_avx512, .dot_bf16 = bz_dot_bf16_avx512
KERNEL_TABLE(bz_kernels_avx512, "avx512", .products = &bz_products_avx512, WITH_512_BITS);
KERNEL_TABLE(bz_kernels_avx512bf16, "avx512bf16", .products = &bz_products_avx512, WITH_BF16);
#if defined(BZ_OS_TILES)
KERNEL_TABLE(bz_kernels_amx, "amx", .products = &bz_products_amx, WITH_BF16);
#endif

#else
typedef int bz_no_avx2; /* ISO C requires a declaration */
#endif
