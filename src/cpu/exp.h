/* The exponential of softmax, activations and the soft cap: the constants, and a scalar version.
 * Every instruction set uses the same polynomial. Accurate to 2 ulp between BZ_EXP_LOWEST and
 * BZ_EXP_HIGHEST; arguments outside are clamped. */
#ifndef BZ_CPU_EXP_H
#define BZ_CPU_EXP_H

#include <stdint.h>
#include <string.h>

#define BZ_EXP_LOWEST   -87.0f
#define BZ_EXP_HIGHEST  88.0f
#define BZ_EXP_LOG2E    1.44269504088896341f
#define BZ_EXP_LN2_HIGH 0.693359375f /* has few bits: its product with a small integer is exact */
#define BZ_EXP_LN2_LOW  -2.12194440e-4f
/* e^r = 1 + r + r^2 (C0 + C1 r + ... + C5 r^5) for |r| <= ln 2 / 2 */
#define BZ_EXP_C0 5.0000001201e-1f
#define BZ_EXP_C1 1.6666665459e-1f
#define BZ_EXP_C2 4.1665795894e-2f
#define BZ_EXP_C3 8.3334519073e-3f
#define BZ_EXP_C4 1.3981999507e-3f
#define BZ_EXP_C5 1.9875691500e-4f

/* gelu(x) = x * sigmoid(scale * x * (1 + cubic * x^2)) */
#define BZ_GELU_SCALE 1.5957691216057308f
#define BZ_GELU_CUBIC 0.044715f

/* tanh(y) = y (1 + T3 y^2 + ... + T13 y^12), off by 1e-7 of its size, for |y| < BZ_TANH_SMALL:
 * there 1 - 2 / (1 + e^(2y)) would lose digits */
#define BZ_TANH_SMALL 0.5f
#define BZ_TANH_T3    -3.3333333333e-1f
#define BZ_TANH_T5    1.3333333333e-1f
#define BZ_TANH_T7    -5.3968253968e-2f
#define BZ_TANH_T9    2.1869488536e-2f
#define BZ_TANH_T11   -8.8632355299e-3f
#define BZ_TANH_T13   3.5921280365e-3f

static inline float bz_exp(float x)
{
    const float shift = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    x = x < BZ_EXP_LOWEST ? BZ_EXP_LOWEST : x > BZ_EXP_HIGHEST ? BZ_EXP_HIGHEST : x;
    float n = x * BZ_EXP_LOG2E + shift;
    n -= shift;
    const float r = (x - n * BZ_EXP_LN2_HIGH) - n * BZ_EXP_LN2_LOW;
    float p =
        ((((BZ_EXP_C5 * r + BZ_EXP_C4) * r + BZ_EXP_C3) * r + BZ_EXP_C2) * r + BZ_EXP_C1) * r +
        BZ_EXP_C0;
    p = p * (r * r) + r + 1.0f;
    const uint32_t bits = (uint32_t)((int32_t)n + 127) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return p * power;
}

/* The same for rows of n values, written so that compilers vectorise them (kernels_plain.c). */
float bz_exp_sum_plain(float *x, size_t n);
void bz_gelu_mul_plain(const float *gate, const float *up, float *out, size_t n);
void bz_silu_plain(const float *x, float *out, size_t n);
void bz_softcap_plain(const float *x, float cap, float *out, size_t n);

static inline float bz_tanh_small(float y)
{
    const float s = y * y;
    const float p =
        ((((BZ_TANH_T13 * s + BZ_TANH_T11) * s + BZ_TANH_T9) * s + BZ_TANH_T7) * s + BZ_TANH_T5) *
            s +
        BZ_TANH_T3;
    return y + y * (p * s);
}

static inline float bz_gelu_angle(float x)
{
    return BZ_GELU_SCALE * x * (1.0f + BZ_GELU_CUBIC * x * x);
}

#endif
