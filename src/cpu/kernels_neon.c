/* The kernels for 64-bit ARM. Every such processor has NEON; the int8 dot product instruction is
 * used where the compiler targets it.
 *
 * Tails shorter than a vector are padded with zeros: one more step of the same sums, so that the
 * order of additions depends on the length only. */
#if defined(__aarch64__)

#include <arm_neon.h>
#include <string.h>

#include "cpu/exp.h"
#include "cpu/kernels.h"
#include "cpu/products.h"
#include "cpu/unpack.h"
#include "file/blocks.h"

#define INLINE static inline __attribute__((always_inline))

INLINE float32x4_t load_tail_f32(const float *p, size_t n) /* n < 4 */
{
    float buffer[4] = {0};
    memcpy(buffer, p, n * sizeof *p);
    return vld1q_f32(buffer);
}

INLINE float32x4_t halves4(const uint16_t *p)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
}

INLINE float32x4_t load_tail_f16(const uint16_t *p, size_t n) /* n < 4 */
{
    uint16_t buffer[4] = {0};
    memcpy(buffer, p, n * sizeof *p);
    return halves4(buffer);
}

/* Adds four sums of four lanes, always in this order. */
INLINE float sum_lanes(const float32x4_t sum[4])
{
    float32x4_t s = vaddq_f32(vaddq_f32(sum[0], sum[1]), vaddq_f32(sum[2], sum[3]));
    float32x2_t two = vadd_f32(vget_low_f32(s), vget_high_f32(s));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

/* ---- f32 ---- */

INLINE void dot_rows(const float *w, const float *x, size_t stride, const size_t R, size_t k,
                     float *out)
{
    float32x4_t sum[4][4];
    for (size_t r = 0; r < R; r++)
        for (size_t a = 0; a < 4; a++)
            sum[r][a] = vdupq_n_f32(0);
    size_t i = 0;
    for (; i + 16 <= k; i += 16)
        for (size_t a = 0; a < 4; a++) {
            float32x4_t v = vld1q_f32(w + i + 4 * a);
            for (size_t r = 0; r < R; r++)
                sum[r][a] = vfmaq_f32(sum[r][a], v, vld1q_f32(x + r * stride + i + 4 * a));
        }
    for (; i + 4 <= k; i += 4) {
        float32x4_t v = vld1q_f32(w + i);
        for (size_t r = 0; r < R; r++)
            sum[r][0] = vfmaq_f32(sum[r][0], v, vld1q_f32(x + r * stride + i));
    }
    if (i < k) {
        float32x4_t v = load_tail_f32(w + i, k - i);
        for (size_t r = 0; r < R; r++)
            sum[r][1] = vfmaq_f32(sum[r][1], v, load_tail_f32(x + r * stride + i, k - i));
    }
    for (size_t r = 0; r < R; r++)
        out[r] = sum_lanes(sum[r]);
}

static void dot(const float *w, const float *x, size_t stride, size_t rows, size_t k, float *out)
{
    for (; rows >= 4; rows -= 4, x += 4 * stride, out += 4)
        dot_rows(w, x, stride, 4, k, out);
    for (; rows > 0; rows--, x += stride, out++)
        dot_rows(w, x, stride, 1, k, out);
}

static void axpy(float a, const float *v, float *out, size_t n)
{
    float32x4_t factor = vdupq_n_f32(a);
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1q_f32(out + i, vfmaq_f32(vld1q_f32(out + i), factor, vld1q_f32(v + i)));
    if (i < n) {
        float buffer[4];
        vst1q_f32(buffer,
                  vfmaq_f32(load_tail_f32(out + i, n - i), factor, load_tail_f32(v + i, n - i)));
        memcpy(out + i, buffer, (n - i) * sizeof *out);
    }
}

/* ---- f16 ---- */

static float dot_f16(const float *q, const uint16_t *k, size_t n)
{
    float32x4_t sum[4];
    for (size_t a = 0; a < 4; a++)
        sum[a] = vdupq_n_f32(0);
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (size_t a = 0; a < 4; a++)
            sum[a] = vfmaq_f32(sum[a], vld1q_f32(q + i + 4 * a), halves4(k + i + 4 * a));
    for (; i + 4 <= n; i += 4)
        sum[0] = vfmaq_f32(sum[0], vld1q_f32(q + i), halves4(k + i));
    if (i < n)
        sum[1] = vfmaq_f32(sum[1], load_tail_f32(q + i, n - i), load_tail_f16(k + i, n - i));
    return sum_lanes(sum);
}

static void axpy_f16(float a, const uint16_t *v, float *out, size_t n)
{
    float32x4_t factor = vdupq_n_f32(a);
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1q_f32(out + i, vfmaq_f32(vld1q_f32(out + i), factor, halves4(v + i)));
    if (i < n) {
        float buffer[4];
        vst1q_f32(buffer,
                  vfmaq_f32(load_tail_f32(out + i, n - i), factor, load_tail_f16(v + i, n - i)));
        memcpy(out + i, buffer, (n - i) * sizeof *out);
    }
}

static void to_f16(const float *x, uint16_t *out, size_t n)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1_u16(out + i, vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(x + i))));
    for (; i < n; i++)
        out[i] = bz_f32_to_f16(x[i]);
}

/* ---- towers ---- */

/* R rows by 16 columns. */
INLINE void panel_rows(const float *a, size_t stride_a, const size_t R, const float *b, size_t k,
                       float *out, size_t stride_out, size_t cols, bool add)
{
    float32x4_t sum[6][4];
    for (size_t r = 0; r < R; r++)
        for (size_t c = 0; c < 4; c++)
            sum[r][c] = vdupq_n_f32(0);
    for (size_t i = 0; i < k; i++, b += BZ_PANEL) {
        float32x4_t v[4];
        for (size_t c = 0; c < 4; c++)
            v[c] = vld1q_f32(b + 4 * c);
        for (size_t r = 0; r < R; r++) {
            float32x4_t x = vdupq_n_f32(a[r * stride_a + i]);
            for (size_t c = 0; c < 4; c++)
                sum[r][c] = vfmaq_f32(sum[r][c], x, v[c]);
        }
    }
    for (size_t r = 0; r < R; r++) {
        float row[BZ_PANEL];
        for (size_t c = 0; c < 4; c++)
            vst1q_f32(row + 4 * c, sum[r][c]);
        for (size_t c = 0; c < cols; c++)
            out[r * stride_out + c] = add ? out[r * stride_out + c] + row[c] : row[c];
    }
}

static void panel_run(const float *a, size_t stride_a, size_t rows, const float *b, size_t k,
                      float *out, size_t stride_out, size_t cols, bool add)
{
    for (; rows >= 6; rows -= 6, a += 6 * stride_a, out += 6 * stride_out)
        panel_rows(a, stride_a, 6, b, k, out, stride_out, cols, add);
    for (; rows > 0; rows--, a += stride_a, out += stride_out)
        panel_rows(a, stride_a, 1, b, k, out, stride_out, cols, add);
}

/* Vectorised by the compiler. */
static float exp_sum(float *x, size_t n)
{
    return bz_exp_sum_plain(x, n);
}

static void gelu_mul(const float *gate, const float *up, float *out, size_t n)
{
    bz_gelu_mul_plain(gate, up, out, n);
}

static void silu(const float *x, float *out, size_t n)
{
    bz_silu_plain(x, out, n);
}

static void softcap(const float *x, float cap, float *out, size_t n)
{
    bz_softcap_plain(x, cap, out, n);
}

/* ---- int8: activations ---- */

/* Bit-equal to the plain kernel, where the treatment of NaN, infinity and tiny groups is
 * explained. */
static void quantize(const float *x, bz_q8 out, size_t n)
{
    for (size_t g = 0; g < n / 32; g++) {
        float32x4_t v[8];
        uint32x4_t largest4 = vdupq_n_u32(0);
        for (size_t j = 0; j < 8; j++) {
            v[j] = vld1q_f32(x + 32 * g + 4 * j);
            largest4 = vmaxq_u32(largest4,
                                 vandq_u32(vreinterpretq_u32_f32(v[j]), vdupq_n_u32(0x7FFFFFFF)));
        }
        uint32_t largest = vmaxvq_u32(largest4), nan = 0x7FC00000u;
        float max, d = 0;
        memcpy(&max, &largest, sizeof max);
        if (largest >= 0x7F800000u || largest < 27u << 23) {
            if (largest >= 0x7F800000u)
                memcpy(&d, &nan, sizeof d);
            memset(out.q + 32 * g, 0, 32);
            out.d[g] = out.sum[2 * g] = out.sum[2 * g + 1] = d;
            continue;
        }
        d = max / 127.0f;
        out.d[g] = d;
        float inverse = 127.0f / max;
        for (size_t h = 0; h < 2; h++) {
            int16x4_t part[4];
            for (size_t j = 0; j < 4; j++) /* vcvta: ties away from zero */
                part[j] = vmovn_s32(vcvtaq_s32_f32(vmulq_n_f32(v[4 * h + j], inverse)));
            int8x16_t bytes = vcombine_s8(vmovn_s16(vcombine_s16(part[0], part[1])),
                                          vmovn_s16(vcombine_s16(part[2], part[3])));
            vst1q_s8(out.q + 32 * g + 16 * h, bytes);
            out.sum[2 * g + h] = d * (float)vaddlvq_s8(bytes);
        }
    }
}

/* ---- int8: products ---- */

/* Exact products of 16 pairs in four sums of four. Two products fit 16 bits:
 * 2 * 128 * 127 < 2^15. */
INLINE int32x4_t products16(int8x16_t w, int8x16_t x)
{
#if defined(__ARM_FEATURE_DOTPROD)
    return vdotq_s32(vdupq_n_s32(0), w, x);
#else
    return vpaddlq_s16(vmlal_high_s8(vmull_s8(vget_low_s8(w), vget_low_s8(x)), w, x));
#endif
}

/* R rows at once, 64 values per iteration. Each 16 of them are added to their own sum. */
INLINE void dot8_rows(bz_w8 w, const bool has_min, const bz_q8 *x, const size_t R, size_t k,
                      float *out)
{
    float32x4_t sum[4][4];
    for (size_t r = 0; r < R; r++)
        for (size_t a = 0; a < 4; a++)
            sum[r][a] = vdupq_n_f32(0);
    size_t i = 0;
    for (; i + 64 <= k; i += 64) {
        float32x4_t s = vld1q_f32(w.s + i / 16);
        float32x4_t scale[4];
        for (size_t r = 0; r < R; r++) {
            float32x2_t d = vld1_f32(x[r].d + i / 32);
            scale[r] = vmulq_f32(s, vcombine_f32(vdup_lane_f32(d, 0), vdup_lane_f32(d, 1)));
        }
#define PART(a)                                                                                    \
    do {                                                                                           \
        int8x16_t q = vld1q_s8(w.q + i + 16 * (a));                                                \
        for (size_t r = 0; r < R; r++) {                                                           \
            float32x4_t p = vcvtq_f32_s32(products16(q, vld1q_s8(x[r].q + i + 16 * (a))));         \
            sum[r][a] = vfmaq_laneq_f32(sum[r][a], p, scale[r], (a));                              \
        }                                                                                          \
    } while (0)
        PART(0);
        PART(1);
        PART(2);
        PART(3);
#undef PART
        if (has_min) {
            float32x4_t m = vld1q_f32(w.m + i / 16);
            for (size_t r = 0; r < R; r++)
                sum[r][0] = vfmsq_f32(sum[r][0], m, vld1q_f32(x[r].sum + i / 16));
        }
    }
    if (i < k) { /* the last 32 values */
        for (size_t r = 0; r < R; r++) {
            for (size_t a = 0; a < 2; a++) {
                int32x4_t p = products16(vld1q_s8(w.q + i + 16 * a), vld1q_s8(x[r].q + i + 16 * a));
                sum[r][a] =
                    vfmaq_n_f32(sum[r][a], vcvtq_f32_s32(p), w.s[i / 16 + a] * x[r].d[i / 32]);
            }
            if (has_min)
                sum[r][2] = vfmsq_f32(sum[r][2], load_tail_f32(w.m + i / 16, 2),
                                      load_tail_f32(x[r].sum + i / 16, 2));
        }
    }
    for (size_t r = 0; r < R; r++)
        out[r] = sum_lanes(sum[r]);
}

/* ---- int8: weights ---- */

INLINE float half_at(const uint8_t *p)
{
    return vgetq_lane_f32(vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(bz_le16(p)))), 0);
}

INLINE void set2(float *p, float v)
{
    p[0] = p[1] = v;
}

INLINE void store16(int8_t *q, uint8x16_t v)
{
    vst1q_s8(q, vreinterpretq_s8_u8(v));
}

INLINE uint8x16_t low_bits(uint8x16_t v, uint8_t mask)
{
    return vandq_u8(v, vdupq_n_u8(mask));
}

/* v >> right, per byte. */
INLINE uint8x16_t shift(uint8x16_t v, int right)
{
    return vshlq_u8(v, vdupq_n_s8((int8_t)-right));
}

/* v - offset per byte, as int8. */
INLINE uint8x16_t lower(uint8x16_t v, uint8_t offset)
{
    return vsubq_u8(v, vdupq_n_u8(offset));
}

/* p[0..16) = d * bytes, as int8. */
INLINE void scale16(float *p, float d, uint8x16_t unsigned_bytes)
{
    int8x16_t bytes = vreinterpretq_s8_u8(unsigned_bytes);
    int16x8_t low = vmovl_s8(vget_low_s8(bytes)), high = vmovl_high_s8(bytes);
    vst1q_f32(p, vmulq_n_f32(vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))), d));
    vst1q_f32(p + 4, vmulq_n_f32(vcvtq_f32_s32(vmovl_high_s16(low)), d));
    vst1q_f32(p + 8, vmulq_n_f32(vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))), d));
    vst1q_f32(p + 12, vmulq_n_f32(vcvtq_f32_s32(vmovl_high_s16(high)), d));
}

/* Each of eight bytes twice: a group of 32 values has two scales, one per 16. */
INLINE uint8x16_t twice(uint32_t first, uint32_t last)
{
    uint8x8_t v = vcreate_u8((uint64_t)last << 32 | first);
    return vcombine_u8(vzip1_u8(v, v), vzip2_u8(v, v));
}

typedef struct pair {
    uint8x16_t first, second; /* values 0..15 and 16..31 of a group */
} pair;

INLINE pair nibbles(const uint8_t *bytes)
{
    uint8x16_t v = vld1q_u8(bytes);
    return (pair){low_bits(v, 15), vshrq_n_u8(v, 4)};
}

/* 16 in every byte whose bit is set in the 32 bits at p. */
INLINE pair fifth_bits(const uint8_t *p)
{
    const uint8x8_t one_each = vcreate_u8(0x8040201008040201u);
    const uint8x16_t select = vcombine_u8(one_each, one_each);
    uint8x16_t first = vcombine_u8(vdup_n_u8(p[0]), vdup_n_u8(p[1]));
    uint8x16_t second = vcombine_u8(vdup_n_u8(p[2]), vdup_n_u8(p[3]));
    return (pair){low_bits(vtstq_u8(first, select), 16), low_bits(vtstq_u8(second, select), 16)};
}

INLINE void store_lowered(int8_t *q, pair v, uint8_t offset)
{
    store16(q, lower(v.first, offset));
    store16(q + 16, lower(v.second, offset));
}

INLINE void store_from_table(int8_t *q, int8x16_t table, pair v)
{
    vst1q_s8(q, vqtbl1q_s8(table, v.first));
    vst1q_s8(q + 16, vqtbl1q_s8(table, v.second));
}

static const int8_t iq4_values[16] = {BZ_IQ4_VALUES};
static const int8_t mxfp4_values[16] = {BZ_MXFP4_VALUES};

INLINE void q8_0(const bz_block_q8_0 *b, bz_w8 w)
{
    set2(w.s, half_at(b->d));
    store16(w.q, vld1q_u8(b->q));
    store16(w.q + 16, vld1q_u8(b->q + 16));
}

INLINE void q4_0(const bz_block_q4_0 *b, bz_w8 w)
{
    set2(w.s, half_at(b->d));
    store_lowered(w.q, nibbles(b->q), 8);
}

INLINE void q4_1(const bz_block_q4_1 *b, bz_w8 w)
{
    set2(w.s, half_at(b->d));
    set2(w.m, -half_at(b->m));
    store_lowered(w.q, nibbles(b->q), 0);
}

INLINE pair five_bits(const uint8_t *q, const uint8_t *high)
{
    pair low = nibbles(q), top = fifth_bits(high);
    return (pair){vorrq_u8(low.first, top.first), vorrq_u8(low.second, top.second)};
}

INLINE void q5_0(const bz_block_q5_0 *b, bz_w8 w)
{
    set2(w.s, half_at(b->d));
    store_lowered(w.q, five_bits(b->q, b->high), 16);
}

INLINE void q5_1(const bz_block_q5_1 *b, bz_w8 w)
{
    set2(w.s, half_at(b->d));
    set2(w.m, -half_at(b->m));
    store_lowered(w.q, five_bits(b->q, b->high), 0);
}

INLINE void iq4_nl(const bz_block_q4_0 *b, bz_w8 w)
{
    set2(w.s, half_at(b->d));
    store_from_table(w.q, vld1q_s8(iq4_values), nibbles(b->q));
}

INLINE void mxfp4(const bz_block_mxfp4 *b, bz_w8 w)
{
    uint32_t bits = bz_mxfp4_scale_bits(b->e);
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    set2(w.s, scale);
    store_from_table(w.q, vld1q_s8(mxfp4_values), nibbles(b->q));
}

INLINE void q2_k(const bz_block_q2_k *b, bz_w8 w)
{
    uint8x16_t scales = vld1q_u8(b->scales);
    scale16(w.s, half_at(b->d), low_bits(scales, 15));
    scale16(w.m, half_at(b->dmin), vshrq_n_u8(scales, 4));
    for (int half = 0; half < 4; half++) { /* 16 bytes: four groups of 16 values, 32 apart */
        uint8x16_t v = vld1q_u8(b->q + 16 * half);
        int8_t *q = w.q + 128 * (half / 2) + 16 * (half % 2);
        for (int r = 0; r < 4; r++)
            store16(q + 32 * r, low_bits(shift(v, 2 * r), 3));
    }
}

INLINE void q3_k(const bz_block_q3_k *b, bz_w8 w)
{
    uint32_t scales[4];
    bz_q3_k_scales(b->scales, scales);
    scale16(w.s, half_at(b->d), lower(vreinterpretq_u8_u32(vld1q_u32(scales)), 32));
    for (int half = 0; half < 4; half++) {
        uint8x16_t v = vld1q_u8(b->q + 16 * half);
        uint8x16_t high = shift(vld1q_u8(b->high + 16 * (half % 2)), 4 * (half / 2));
        int8_t *q = w.q + 128 * (half / 2) + 16 * (half % 2);
        for (int r = 0; r < 4; r++) {
            uint8x16_t third = low_bits(shift(high, r - 2), 4);
            store16(q + 32 * r, lower(vorrq_u8(low_bits(shift(v, 2 * r), 3), third), 4));
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
    for (int half = 0; half < 8; half++) {
        uint8x16_t v = vld1q_u8(b->q + 16 * half);
        int8_t *q = w.q + 64 * (half / 2) + 16 * (half % 2);
        store16(q, low_bits(v, 15));
        store16(q + 32, vshrq_n_u8(v, 4));
    }
}

INLINE void q5_k(const bz_block_q5_k *b, bz_w8 w)
{
    scales_q4_k(b->d, b->dmin, b->scales, w);
    for (int half = 0; half < 8; half++) {
        int c = half / 2; /* values 64c .. 64c + 63: bits 2c and 2c + 1 of the high bytes */
        uint8x16_t v = vld1q_u8(b->q + 16 * half), high = vld1q_u8(b->high + 16 * (half % 2));
        int8_t *q = w.q + 64 * c + 16 * (half % 2);
        store16(q, vorrq_u8(low_bits(v, 15), low_bits(shift(high, 2 * c - 4), 16)));
        store16(q + 32, vorrq_u8(vshrq_n_u8(v, 4), low_bits(shift(high, 2 * c - 3), 16)));
    }
}

INLINE void q6_k(const bz_block_q6_k *b, bz_w8 w)
{
    scale16(w.s, half_at(b->d), vld1q_u8(b->scales));
    for (int half = 0; half < 4; half++) {
        const uint8_t *low = b->low + 64 * (half / 2) + 16 * (half % 2);
        uint8x16_t a = vld1q_u8(low), c = vld1q_u8(low + 32), high = vld1q_u8(b->high + 16 * half);
        int8_t *q = w.q + 128 * (half / 2) + 16 * (half % 2);
        store16(q, lower(vorrq_u8(low_bits(a, 15), low_bits(vshlq_n_u8(high, 4), 48)), 32));
        store16(q + 32, lower(vorrq_u8(low_bits(c, 15), low_bits(vshlq_n_u8(high, 2), 48)), 32));
        store16(q + 64, lower(vorrq_u8(vshrq_n_u8(a, 4), low_bits(high, 48)), 32));
        store16(q + 96, lower(vorrq_u8(vshrq_n_u8(c, 4), low_bits(vshrq_n_u8(high, 2), 48)), 32));
    }
}

INLINE void iq4_xs(const bz_block_iq4_xs *b, bz_w8 w)
{
    uint32_t scales[2];
    bz_iq4_xs_scales(b, scales);
    scale16(w.s, half_at(b->d), lower(twice(scales[0], scales[1]), 32));
    int8x16_t table = vld1q_s8(iq4_values);
    for (int g = 0; g < 8; g++)
        store_from_table(w.q + 32 * g, table, nibbles(b->q + 16 * g));
}

#include "cpu/unpack_each.h"

/* ---- dequantization ---- */

/* s * q - m, each operation rounded: no fused multiply-add. */
INLINE void expand(bz_w8 w, const bool has_min, float *out, size_t n)
{
    for (size_t i = 0; i < n; i += 8) {
        int16x8_t q = vmovl_s8(vld1_s8(w.q + i));
        float32x4_t a = vmulq_n_f32(vcvtq_f32_s32(vmovl_s16(vget_low_s16(q))), w.s[i / 16]);
        float32x4_t b = vmulq_n_f32(vcvtq_f32_s32(vmovl_high_s16(q)), w.s[i / 16]);
        if (has_min) {
            a = vsubq_f32(a, vdupq_n_f32(w.m[i / 16]));
            b = vsubq_f32(b, vdupq_n_f32(w.m[i / 16]));
        }
        vst1q_f32(out + i, a);
        vst1q_f32(out + i + 4, b);
    }
}

static void dequantize_f16(const uint8_t *bytes, float *out, size_t n)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1q_f32(out + i, vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(bytes + 2 * i))));
    for (; i < n; i++)
        out[i] = half_at(bytes + 2 * i);
}

static void dequantize_bf16(const uint8_t *bytes, float *out, size_t n)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        uint32x4_t bits = vshll_n_u16(vreinterpret_u16_u8(vld1_u8(bytes + 2 * i)), 16);
        vst1q_f32(out + i, vreinterpretq_f32_u32(bits));
    }
    for (; i < n; i++)
        out[i] = bz_bf16_to_f32(bz_le16(bytes + 2 * i));
}

#include "cpu/kernels_table.h"

KERNEL_TABLE(bz_kernels_neon, "neon", .products = NULL);
KERNEL_TABLE(bz_kernels_dotprod, "dotprod", .products = &bz_products_dotprod);
KERNEL_TABLE(bz_kernels_i8mm, "i8mm", .products = &bz_products_i8mm);

#else
typedef int bz_no_neon; /* ISO C requires a declaration */
#endif
