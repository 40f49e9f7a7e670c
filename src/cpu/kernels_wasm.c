/* The kernels for WebAssembly SIMD128. There is no fused multiply-add: each product and each sum is
 * rounded.
 *
 * Tails shorter than a vector are padded with zeros: one more step of the same sums, so that the
 * order of additions depends on the length only. */
#if defined(__wasm_simd128__)

#include <string.h>
#include <wasm_simd128.h>

#include "cpu/exp.h"
#include "cpu/kernels.h"
#include "cpu/products.h"
#include "cpu/unpack.h"
#include "file/blocks.h"

#define INLINE static inline __attribute__((always_inline))

INLINE v128_t load_tail_f32(const float *p, size_t n) /* n < 4 */
{
    float buffer[4] = {0};
    memcpy(buffer, p, n * sizeof *p);
    return wasm_v128_load(buffer);
}

/* sum + a * b */
INLINE v128_t add_product(v128_t sum, v128_t a, v128_t b)
{
    return wasm_f32x4_add(sum, wasm_f32x4_mul(a, b));
}

/* Adds four sums of four lanes, always in this order. */
INLINE float sum_lanes(const v128_t sum[4])
{
    v128_t s = wasm_f32x4_add(wasm_f32x4_add(sum[0], sum[1]), wasm_f32x4_add(sum[2], sum[3]));
    v128_t two = wasm_f32x4_add(s, wasm_i32x4_shuffle(s, s, 2, 3, 0, 1));
    return wasm_f32x4_extract_lane(two, 0) + wasm_f32x4_extract_lane(two, 1);
}

/* ---- f32 ---- */

INLINE void dot_rows(const float *w, const float *x, size_t stride, const size_t R, size_t k,
                     float *out)
{
    v128_t sum[4][4];
    for (size_t r = 0; r < R; r++)
        for (size_t a = 0; a < 4; a++)
            sum[r][a] = wasm_f32x4_splat(0);
    size_t i = 0;
    for (; i + 16 <= k; i += 16)
        for (size_t a = 0; a < 4; a++) {
            v128_t v = wasm_v128_load(w + i + 4 * a);
            for (size_t r = 0; r < R; r++)
                sum[r][a] = add_product(sum[r][a], v, wasm_v128_load(x + r * stride + i + 4 * a));
        }
    for (; i + 4 <= k; i += 4) {
        v128_t v = wasm_v128_load(w + i);
        for (size_t r = 0; r < R; r++)
            sum[r][0] = add_product(sum[r][0], v, wasm_v128_load(x + r * stride + i));
    }
    if (i < k) {
        v128_t v = load_tail_f32(w + i, k - i);
        for (size_t r = 0; r < R; r++)
            sum[r][1] = add_product(sum[r][1], v, load_tail_f32(x + r * stride + i, k - i));
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
    v128_t factor = wasm_f32x4_splat(a);
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        wasm_v128_store(out + i,
                        add_product(wasm_v128_load(out + i), factor, wasm_v128_load(v + i)));
    for (; i < n; i++)
        out[i] += a * v[i];
}

/* ---- f16 ---- */

/* Four f16 in the low bits of four words, to f32. Subnormals are normalized by an addition and a
 * subtraction; NaN becomes quiet. */
INLINE v128_t widen(v128_t f16)
{
    v128_t sign = wasm_i32x4_shl(wasm_v128_and(f16, wasm_i32x4_splat(0x8000)), 16);
    v128_t rest = wasm_i32x4_shl(wasm_v128_and(f16, wasm_i32x4_splat(0x7FFF)), 13);
    v128_t magic = wasm_i32x4_splat(113 << 23);
    v128_t small = wasm_f32x4_sub(wasm_i32x4_add(rest, magic), magic);
    v128_t bits = wasm_v128_bitselect(small, wasm_i32x4_add(rest, wasm_i32x4_splat(112 << 23)),
                                      wasm_i32x4_lt(rest, wasm_i32x4_splat(1 << 23)));
    v128_t largest = wasm_i32x4_splat(31 << 23);
    v128_t special =
        wasm_v128_or(wasm_v128_and(wasm_i32x4_ge(rest, largest), wasm_i32x4_splat(0x7F800000)),
                     wasm_v128_and(wasm_i32x4_gt(rest, largest), wasm_i32x4_splat(0x00400000)));
    return wasm_v128_or(wasm_v128_or(bits, special), sign);
}

INLINE v128_t halves4(const void *p)
{
    return widen(wasm_u32x4_load16x4(p));
}

INLINE v128_t load_tail_f16(const uint16_t *p, size_t n) /* n < 4 */
{
    uint16_t buffer[4] = {0};
    memcpy(buffer, p, n * sizeof *p);
    return halves4(buffer);
}

static float dot_f16(const float *q, const uint16_t *k, size_t n)
{
    v128_t sum[4];
    for (size_t a = 0; a < 4; a++)
        sum[a] = wasm_f32x4_splat(0);
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (size_t a = 0; a < 4; a++)
            sum[a] = add_product(sum[a], wasm_v128_load(q + i + 4 * a), halves4(k + i + 4 * a));
    for (; i + 4 <= n; i += 4)
        sum[0] = add_product(sum[0], wasm_v128_load(q + i), halves4(k + i));
    if (i < n)
        sum[1] = add_product(sum[1], load_tail_f32(q + i, n - i), load_tail_f16(k + i, n - i));
    return sum_lanes(sum);
}

static void axpy_f16(float a, const uint16_t *v, float *out, size_t n)
{
    v128_t factor = wasm_f32x4_splat(a);
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        wasm_v128_store(out + i, add_product(wasm_v128_load(out + i), factor, halves4(v + i)));
    if (i < n) {
        float buffer[4];
        wasm_v128_store(buffer, add_product(load_tail_f32(out + i, n - i), factor,
                                            load_tail_f16(v + i, n - i)));
        memcpy(out + i, buffer, (n - i) * sizeof *out);
    }
}

static void to_f16(const float *x, uint16_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = bz_f32_to_f16(x[i]);
}

/* ---- towers ---- */

/* R rows by 16 columns. */
INLINE void panel_rows(const float *a, size_t stride_a, const size_t R, const float *b, size_t k,
                       float *out, size_t stride_out, size_t cols, bool add)
{
    v128_t sum[3][4];
    for (size_t r = 0; r < R; r++)
        for (size_t c = 0; c < 4; c++)
            sum[r][c] = wasm_f32x4_splat(0);
    for (size_t i = 0; i < k; i++, b += BZ_PANEL) {
        v128_t v[4];
        for (size_t c = 0; c < 4; c++)
            v[c] = wasm_v128_load(b + 4 * c);
        for (size_t r = 0; r < R; r++) {
            v128_t x = wasm_f32x4_splat(a[r * stride_a + i]);
            for (size_t c = 0; c < 4; c++)
                sum[r][c] = add_product(sum[r][c], x, v[c]);
        }
    }
    for (size_t r = 0; r < R; r++) {
        float row[BZ_PANEL];
        for (size_t c = 0; c < 4; c++)
            wasm_v128_store(row + 4 * c, sum[r][c]);
        for (size_t c = 0; c < cols; c++)
            out[r * stride_out + c] = add ? out[r * stride_out + c] + row[c] : row[c];
    }
}

static void panel_run(const float *a, size_t stride_a, size_t rows, const float *b, size_t k,
                      float *out, size_t stride_out, size_t cols, bool add)
{
    for (; rows >= 3; rows -= 3, a += 3 * stride_a, out += 3 * stride_out)
        panel_rows(a, stride_a, 3, b, k, out, stride_out, cols, add);
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

INLINE uint32_t largest_lane(v128_t v)
{
    v = wasm_u32x4_max(v, wasm_i32x4_shuffle(v, v, 2, 3, 0, 1));
    v = wasm_u32x4_max(v, wasm_i32x4_shuffle(v, v, 1, 0, 3, 2));
    return (uint32_t)wasm_i32x4_extract_lane(v, 0);
}

INLINE int32_t sum_of_bytes(v128_t bytes)
{
    v128_t v = wasm_i32x4_extadd_pairwise_i16x8(wasm_i16x8_extadd_pairwise_i8x16(bytes));
    v = wasm_i32x4_add(v, wasm_i32x4_shuffle(v, v, 2, 3, 0, 1));
    return wasm_i32x4_extract_lane(v, 0) + wasm_i32x4_extract_lane(v, 1);
}

/* Bit-equal to the plain kernel, where rounding and the treatment of NaN, infinity and tiny groups
 * are explained. */
static void quantize(const float *x, bz_q8 out, size_t n)
{
    for (size_t g = 0; g < n / 32; g++) {
        v128_t v[8], magnitudes = wasm_i32x4_splat(0);
        for (size_t j = 0; j < 8; j++) {
            v[j] = wasm_v128_load(x + 32 * g + 4 * j);
            magnitudes = wasm_u32x4_max(magnitudes, wasm_f32x4_abs(v[j]));
        }
        uint32_t largest = largest_lane(magnitudes), nan = 0x7FC00000u;
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
        v128_t inverse = wasm_f32x4_splat(127.0f / max);
        for (size_t h = 0; h < 2; h++) {
            v128_t part[4];
            for (size_t j = 0; j < 4; j++) {
                v128_t scaled = wasm_f32x4_mul(v[4 * h + j], inverse);
                v128_t sign = wasm_v128_and(scaled, wasm_i32x4_splat(INT32_MIN));
                v128_t almost_half = wasm_v128_or(sign, wasm_i32x4_splat(0x3EFFFFFF));
                part[j] = wasm_i32x4_trunc_sat_f32x4(wasm_f32x4_add(scaled, almost_half));
            }
            v128_t bytes = wasm_i8x16_narrow_i16x8(wasm_i16x8_narrow_i32x4(part[0], part[1]),
                                                   wasm_i16x8_narrow_i32x4(part[2], part[3]));
            wasm_v128_store(out.q + 32 * g + 16 * h, bytes);
            out.sum[2 * g + h] = d * (float)sum_of_bytes(bytes);
        }
    }
}

/* ---- int8: products ---- */

/* Exact products of 16 pairs in four sums of four. */
INLINE v128_t products16(v128_t w, v128_t x)
{
    v128_t low =
        wasm_i32x4_dot_i16x8(wasm_i16x8_extend_low_i8x16(w), wasm_i16x8_extend_low_i8x16(x));
    v128_t high =
        wasm_i32x4_dot_i16x8(wasm_i16x8_extend_high_i8x16(w), wasm_i16x8_extend_high_i8x16(x));
    return wasm_i32x4_add(low, high);
}

/* R rows at once. The two halves of a group of 32 values are added to separate sums, and so are the
 * minima. */
INLINE void dot8_rows(bz_w8 w, const bool has_min, const bz_q8 *x, const size_t R, size_t k,
                      float *out)
{
    v128_t sum[4][4];
    for (size_t r = 0; r < R; r++)
        for (size_t a = 0; a < 4; a++)
            sum[r][a] = wasm_f32x4_splat(0);
    for (size_t i = 0; i < k; i += 32) {
        v128_t q0 = wasm_v128_load(w.q + i), q1 = wasm_v128_load(w.q + i + 16);
        float s0 = w.s[i / 16], s1 = w.s[i / 16 + 1];
        for (size_t r = 0; r < R; r++) {
            float d = x[r].d[i / 32];
            v128_t p0 = wasm_f32x4_convert_i32x4(products16(q0, wasm_v128_load(x[r].q + i)));
            v128_t p1 = wasm_f32x4_convert_i32x4(products16(q1, wasm_v128_load(x[r].q + i + 16)));
            sum[r][0] = add_product(sum[r][0], p0, wasm_f32x4_splat(s0 * d));
            sum[r][1] = add_product(sum[r][1], p1, wasm_f32x4_splat(s1 * d));
        }
    }
    if (has_min) {
        size_t g = 0; /* groups of 16 */
        for (; g + 4 <= k / 16; g += 4) {
            v128_t m = wasm_v128_load(w.m + g);
            for (size_t r = 0; r < R; r++)
                sum[r][2] =
                    wasm_f32x4_sub(sum[r][2], wasm_f32x4_mul(m, wasm_v128_load(x[r].sum + g)));
        }
        if (g < k / 16) { /* the last two groups */
            v128_t m = load_tail_f32(w.m + g, 2);
            for (size_t r = 0; r < R; r++)
                sum[r][3] =
                    wasm_f32x4_sub(sum[r][3], wasm_f32x4_mul(m, load_tail_f32(x[r].sum + g, 2)));
        }
    }
    for (size_t r = 0; r < R; r++)
        out[r] = sum_lanes(sum[r]);
}

/* ---- int8: weights ---- */

INLINE float half_at(const uint8_t *p)
{
    return bz_f16_to_f32(bz_le16(p));
}

INLINE void set2(float *p, float v)
{
    p[0] = p[1] = v;
}

INLINE v128_t low_bits(v128_t v, uint8_t mask)
{
    return wasm_v128_and(v, wasm_u8x16_splat(mask));
}

/* v - offset per byte, as int8. */
INLINE v128_t lower(v128_t v, uint8_t offset)
{
    return wasm_i8x16_sub(v, wasm_u8x16_splat(offset));
}

/* p[0..16) = d * bytes, as int8. */
INLINE void scale16(float *p, float d, v128_t bytes)
{
    v128_t low = wasm_i16x8_extend_low_i8x16(bytes), high = wasm_i16x8_extend_high_i8x16(bytes);
    v128_t part[4] = {wasm_i32x4_extend_low_i16x8(low), wasm_i32x4_extend_high_i16x8(low),
                      wasm_i32x4_extend_low_i16x8(high), wasm_i32x4_extend_high_i16x8(high)};
    for (size_t j = 0; j < 4; j++)
        wasm_v128_store(p + 4 * j,
                        wasm_f32x4_mul(wasm_f32x4_convert_i32x4(part[j]), wasm_f32x4_splat(d)));
}

/* Each of eight bytes twice: a group of 32 values has two scales, one per 16. */
INLINE v128_t twice(uint32_t first, uint32_t last)
{
    v128_t v = wasm_u32x4_make(first, last, 0, 0);
    return wasm_i8x16_shuffle(v, v, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
}

typedef struct pair {
    v128_t first, second; /* values 0..15 and 16..31 of a group */
} pair;

INLINE pair nibbles(const uint8_t *bytes)
{
    v128_t v = wasm_v128_load(bytes);
    return (pair){low_bits(v, 15), wasm_u8x16_shr(v, 4)};
}

/* 16 in every byte whose bit is set in the 16 bits at p. */
INLINE v128_t fifth_bit(const uint8_t *p)
{
    const v128_t select = wasm_u64x2_splat(0x8040201008040201u);
    v128_t v = wasm_i8x16_shuffle(wasm_u8x16_splat(p[0]), wasm_u8x16_splat(p[1]), 0, 0, 0, 0, 0, 0,
                                  0, 0, 16, 16, 16, 16, 16, 16, 16, 16);
    return low_bits(wasm_i8x16_eq(wasm_v128_and(v, select), select), 16);
}

INLINE void store_lowered(int8_t *q, pair v, uint8_t offset)
{
    wasm_v128_store(q, lower(v.first, offset));
    wasm_v128_store(q + 16, lower(v.second, offset));
}

INLINE void store_from_table(int8_t *q, v128_t table, pair v)
{
    wasm_v128_store(q, wasm_i8x16_swizzle(table, v.first));
    wasm_v128_store(q + 16, wasm_i8x16_swizzle(table, v.second));
}

static const int8_t iq4_values[16] = {BZ_IQ4_VALUES};
static const int8_t mxfp4_values[16] = {BZ_MXFP4_VALUES};

INLINE void q8_0(const bz_block_q8_0 *b, bz_w8 w)
{
    set2(w.s, half_at(b->d));
    memcpy(w.q, b->q, 32);
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
    pair low = nibbles(q);
    return (pair){wasm_v128_or(low.first, fifth_bit(high)),
                  wasm_v128_or(low.second, fifth_bit(high + 2))};
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
    store_from_table(w.q, wasm_v128_load(iq4_values), nibbles(b->q));
}

INLINE void mxfp4(const bz_block_mxfp4 *b, bz_w8 w)
{
    uint32_t bits = bz_mxfp4_scale_bits(b->e);
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    set2(w.s, scale);
    store_from_table(w.q, wasm_v128_load(mxfp4_values), nibbles(b->q));
}

INLINE void q2_k(const bz_block_q2_k *b, bz_w8 w)
{
    v128_t scales = wasm_v128_load(b->scales);
    scale16(w.s, half_at(b->d), low_bits(scales, 15));
    scale16(w.m, half_at(b->dmin), wasm_u8x16_shr(scales, 4));
    for (int half = 0; half < 4; half++) { /* 16 bytes: four groups of 16 values, 32 apart */
        v128_t v = wasm_v128_load(b->q + 16 * half);
        int8_t *q = w.q + 128 * (half / 2) + 16 * (half % 2);
        for (uint32_t r = 0; r < 4; r++)
            wasm_v128_store(q + 32 * r, low_bits(wasm_u8x16_shr(v, 2 * r), 3));
    }
}

INLINE void q3_k(const bz_block_q3_k *b, bz_w8 w)
{
    uint32_t scales[4];
    bz_q3_k_scales(b->scales, scales);
    scale16(w.s, half_at(b->d), lower(wasm_v128_load(scales), 32));
    for (uint32_t half = 0; half < 4; half++) {
        v128_t v = wasm_v128_load(b->q + 16 * half);
        v128_t high = wasm_u8x16_shr(wasm_v128_load(b->high + 16 * (half % 2)), 4 * (half / 2));
        int8_t *q = w.q + 128 * (half / 2) + 16 * (half % 2);
        for (uint32_t r = 0; r < 4; r++) {
            v128_t third = wasm_i8x16_shl(low_bits(wasm_u8x16_shr(high, r), 1), 2);
            wasm_v128_store(q + 32 * r,
                            lower(wasm_v128_or(low_bits(wasm_u8x16_shr(v, 2 * r), 3), third), 4));
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
        v128_t v = wasm_v128_load(b->q + 16 * half);
        int8_t *q = w.q + 64 * (half / 2) + 16 * (half % 2);
        wasm_v128_store(q, low_bits(v, 15));
        wasm_v128_store(q + 32, wasm_u8x16_shr(v, 4));
    }
}

INLINE void q5_k(const bz_block_q5_k *b, bz_w8 w)
{
    scales_q4_k(b->d, b->dmin, b->scales, w);
    for (uint32_t half = 0; half < 8; half++) {
        uint32_t c = half / 2; /* values 64c .. 64c + 63: bits 2c and 2c + 1 of the high bytes */
        v128_t v = wasm_v128_load(b->q + 16 * half);
        v128_t high = wasm_u8x16_shr(wasm_v128_load(b->high + 16 * (half % 2)), 2 * c);
        int8_t *q = w.q + 64 * c + 16 * (half % 2);
        wasm_v128_store(q, wasm_v128_or(low_bits(v, 15), wasm_i8x16_shl(low_bits(high, 1), 4)));
        wasm_v128_store(q + 32,
                        wasm_v128_or(wasm_u8x16_shr(v, 4), wasm_i8x16_shl(low_bits(high, 2), 3)));
    }
}

INLINE void q6_k(const bz_block_q6_k *b, bz_w8 w)
{
    scale16(w.s, half_at(b->d), wasm_v128_load(b->scales));
    for (int half = 0; half < 4; half++) {
        const uint8_t *low = b->low + 64 * (half / 2) + 16 * (half % 2);
        v128_t a = wasm_v128_load(low), c = wasm_v128_load(low + 32),
               high = wasm_v128_load(b->high + 16 * half);
        int8_t *q = w.q + 128 * (half / 2) + 16 * (half % 2);
        wasm_v128_store(
            q, lower(wasm_v128_or(low_bits(a, 15), low_bits(wasm_i8x16_shl(high, 4), 48)), 32));
        wasm_v128_store(
            q + 32,
            lower(wasm_v128_or(low_bits(c, 15), low_bits(wasm_i8x16_shl(high, 2), 48)), 32));
        wasm_v128_store(q + 64, lower(wasm_v128_or(wasm_u8x16_shr(a, 4), low_bits(high, 48)), 32));
        wasm_v128_store(
            q + 96,
            lower(wasm_v128_or(wasm_u8x16_shr(c, 4), low_bits(wasm_u8x16_shr(high, 2), 48)), 32));
    }
}

INLINE void iq4_xs(const bz_block_iq4_xs *b, bz_w8 w)
{
    uint32_t scales[2];
    bz_iq4_xs_scales(b, scales);
    scale16(w.s, half_at(b->d), lower(twice(scales[0], scales[1]), 32));
    v128_t table = wasm_v128_load(iq4_values);
    for (int g = 0; g < 8; g++)
        store_from_table(w.q + 32 * g, table, nibbles(b->q + 16 * g));
}

#include "cpu/unpack_each.h"

/* ---- dequantization ---- */

INLINE void expand(bz_w8 w, const bool has_min, float *out, size_t n)
{
    for (size_t i = 0; i < n; i += 4) {
        v128_t q = wasm_f32x4_convert_i32x4(wasm_i32x4_extend_low_i16x8(
            wasm_i16x8_extend_low_i8x16(wasm_v128_load32_zero(w.q + i))));
        v128_t v = wasm_f32x4_mul(q, wasm_f32x4_splat(w.s[i / 16]));
        wasm_v128_store(out + i, has_min ? wasm_f32x4_sub(v, wasm_f32x4_splat(w.m[i / 16])) : v);
    }
}

static void dequantize_f16(const uint8_t *bytes, float *out, size_t n)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        wasm_v128_store(out + i, widen(wasm_u32x4_load16x4(bytes + 2 * i)));
    for (; i < n; i++)
        out[i] = half_at(bytes + 2 * i);
}

static void dequantize_bf16(const uint8_t *bytes, float *out, size_t n)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        wasm_v128_store(out + i, wasm_i32x4_shl(wasm_u32x4_load16x4(bytes + 2 * i), 16));
    for (; i < n; i++)
        out[i] = bz_bf16_to_f32(bz_le16(bytes + 2 * i));
}

#include "cpu/kernels_table.h"

KERNEL_TABLE(bz_kernels_wasm, "simd128", .products = &bz_products_wasm);

#else
typedef int bz_no_wasm_simd; /* ISO C requires a declaration */
#endif
