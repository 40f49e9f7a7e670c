/* The inner loops of the CPU back end, one table per instruction set.
 *
 * The dot product of a weight row with an activation row has a fixed order of additions, which
 * depends on the row length K only. Kernels that take several activation rows at once produce the
 * same bits as one row at a time: batch size, chunk start and thread count never change a result.
 *
 * Two ways to multiply by a quantized matrix:
 *   exact   weights are dequantized to f32 and multiplied with f32 activations;
 *   int8    activations are rounded to int8 in groups of 32, weights are unpacked to int8 with a
 *           scale and a minimum per 16 values; integer dot products of 16, f32 sums. One
 *           activation format serves every block type.
 */
#ifndef BZ_CPU_KERNELS_H
#define BZ_CPU_KERNELS_H

#include "file/quant.h"

/* int8 activations. x[i] ~ d[i/32] * q[i], d = max|x|/127 of the group, q rounded to nearest, ties
 * away from zero, in -127..127. A group with max|x| below 2^-100 becomes zero; a group with an
 * infinity or NaN has d = NaN and q = 0, so that every product with it is NaN. */
typedef struct bz_q8 {
    int8_t *q;  /* [K] */
    float *d;   /* [K/32] */
    float *sum; /* [K/16]: d * (q[16g] + ... + q[16g+15]), used with the minima */
} bz_q8;

/* Unpacked weights: w[i] = s[i/16] * q[i] - m[i/16]. */
typedef struct bz_w8 {
    int8_t *q; /* [K] */
    float *s;  /* [K/16] */
    float *m;  /* [K/16]; unused and possibly NULL for types without minima */
} bz_w8;       /* types with minima have q in 0..127 */

typedef struct bz_products bz_products; /* products.h */

typedef struct bz_kernels {
    const char *name; /* what users call it: "avx512", "plain", ... */
    /* Products with int8 activations directly from blocks; NULL: by unpack and dot8. */
    const bz_products *products;

    /* out[0..n) = values of n/block blocks; bit-equal to bz_dequantize. */
    void (*dequantize)(bz_type type, const void *blocks, float *out, size_t n);
    /* Unpacks n/block blocks of a quantized type (not F32, F16, BF16). */
    void (*unpack)(bz_type type, const void *blocks, bz_w8 out, size_t n);
    /* Rounds x[n] to int8; n is a multiple of 32. */
    void (*quantize)(const float *x, bz_q8 out, size_t n);

    /* out[r] = sum_i w[i] * x[r * stride + i], for r < rows. Any k >= 1. */
    void (*dot)(const float *w, const float *x, size_t stride, size_t rows, size_t k, float *out);
    /* out[r * stride_out + c] of `count` weight rows c, one after another, and activation rows r <
     * rows, with the bits of dot. NULL: by dot. */
    void (*dot_tile)(const float *w, size_t count, const float *x, size_t stride, size_t rows,
                     size_t k, float *out, size_t stride_out);
    /* As dot for one row and F16 or BF16 weights as they are in the file, with the bits of
     * dequantize and dot. NULL: by these. */
    float (*dot_halves)(bz_type type, const void *w, const float *x, size_t k);
    /* BF16 weights with activations that are rounded to bf16, ties to even, and whose denormals
     * become zero; NaN and infinities stay what they are. NULL: in f32.
     * to_bf16: n values, and zeros up to a multiple of BZ_BF16_STEP. dot_bf16: out[r * stride_out +
     * c] of `count` weight rows c as they are in the file and activation rows r < rows, `stride` a
     * multiple of BZ_BF16_STEP; sums: BZ_BF16_SUMS floats at a multiple of 64 bytes. */
    void (*to_bf16)(const float *x, uint16_t *out, size_t n);
    void (*dot_bf16)(const void *w, size_t count, const uint16_t *x, size_t stride, size_t rows,
                     size_t k, float *sums, float *out, size_t stride_out);
    /* out[r] = dot product of the unpacked weights with activation row r. k is a multiple of 32.
     * has_min: bz_type_has_min of the weight type. False: w.m is not read; true: no w.q is
     * negative. */
    void (*dot8)(bz_w8 w, bool has_min, const bz_q8 *x, size_t rows, size_t k, float *out);

    float (*sum_squares)(const float *x, size_t n);

    /* Attention over cached keys and values in f32 or f16; n = head size. */
    float (*dot_f16)(const float *q, const uint16_t *k, size_t n);
    void (*axpy)(float a, const float *v, float *out, size_t n); /* out += a * v */
    void (*axpy_f16)(float a, const uint16_t *v, float *out, size_t n);
    void (*to_f16)(const float *x, uint16_t *out, size_t n); /* nearest even */

    /* One row's attention over n cached rows in f16, for `heads` heads q [heads][d], d a multiple
     * of 32, with the bits of dequantize, dot and panel. Rows are row_bytes apart.
     * scores[h * stride + j] = q_h . k_j; sums [heads][d] = (add: sums +) sum over j of
     * weights[h * stride + j] v_j, in order. NULL: by dequantize, dot and panel. */
    void (*scores_f16)(const float *q, size_t heads, const uint8_t *keys, size_t row_bytes,
                       size_t n, size_t d, float *scores, size_t stride);
    void (*values_f16)(const float *weights, size_t stride, size_t heads, const uint8_t *values,
                       size_t row_bytes, size_t n, size_t d, float *sums, bool add);

    /* Towers and attention. out[r][c] = sum_i a[r * stride_a + i] * b[16 i + c] for r < rows, c <
     * cols <= 16. K is split into runs of BZ_PANEL_RUN whose sums are added, which makes long sums
     * more accurate and keeps b in the first-level cache. */
    void (*panel)(const float *a, size_t stride_a, size_t rows, const float *b, size_t k,
                  float *out, size_t stride_out, size_t cols);
    /* x[i] = exp(x[i] - max x); returns the sum. */
    float (*exp_sum)(float *x, size_t n);
    void (*gelu_mul)(const float *gate, const float *up, float *out, size_t n); /* tanh form */
    void (*silu)(const float *x, float *out, size_t n);                         /* out may be x */
    /* out[i] = cap * tanh(x[i] / cap), off by at most 1e-6 of it; NaN stays NaN. out may be x. */
    void (*softcap)(const float *x, float cap, float *out, size_t n);
} bz_kernels;

enum {
    BZ_PANEL = 16 /* columns of a panel */,
    BZ_PANEL_RUN = 768,
    BZ_DOT_TILE = 6, /* dot_tile is best with multiples of this many weight rows */
    BZ_BF16_STEP = 32,
    BZ_BF16_TILE = 48, /* and dot_bf16, with many activation rows, with these */
    BZ_BF16_SUMS = 24 * BZ_BF16_TILE * 16
};

/* Whether the type has minima (w[i] = s*q - m with m not zero). */
bool bz_type_has_min(bz_type type);

/* The kernels called `name`, or NULL if this processor does not support them. name NULL: the best
 * supported ones; if they could be those of AMX, a measurement of some hundred microseconds tells
 * whether they are. */
const bz_kernels *bz_kernels_best(const char *name);

/* All tables that this processor supports, best first. */
enum { BZ_KERNEL_TABLES = 6 };
size_t bz_kernels_count(void);
const bz_kernels *bz_kernels_at(size_t i);

extern const bz_kernels bz_kernels_plain;
#if defined(__x86_64__)
extern const bz_kernels bz_kernels_avx2, bz_kernels_avxvnni, bz_kernels_avx512,
    bz_kernels_avx512bf16, bz_kernels_amx;
/* dot_tile_avx512.c, dot_bf16_avx512.c, heads_avx512.c */
void bz_dot_tile_avx512(const float *w, size_t count, const float *x, size_t stride, size_t rows,
                        size_t k, float *out, size_t stride_out);
void bz_to_bf16_avx512(const float *x, uint16_t *out, size_t n);
void bz_dot_bf16_avx512(const void *w, size_t count, const uint16_t *x, size_t stride, size_t rows,
                        size_t k, float *sums, float *out, size_t stride_out);
void bz_scores_f16_avx512(const float *q, size_t heads, const uint8_t *keys, size_t row_bytes,
                          size_t n, size_t d, float *scores, size_t stride);
void bz_values_f16_avx512(const float *weights, size_t stride, size_t heads, const uint8_t *values,
                          size_t row_bytes, size_t n, size_t d, float *sums, bool add);
#elif defined(__aarch64__)
extern const bz_kernels bz_kernels_neon, bz_kernels_dotprod, bz_kernels_i8mm;
#elif defined(__wasm_simd128__)
extern const bz_kernels bz_kernels_wasm;
#endif

#endif
