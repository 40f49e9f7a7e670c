/* exp in f32 and sums of exponentials over a row. */
#include "sample/softmax.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { LANES = 8, BLOCK = 512 };

/* To the range of exp_clamped; smaller values and NaN become -88. */
static inline float clamp(float x)
{
    x = x >= -87 ? x : -88;
    return x > 0 ? 0 : x;
}

static inline float exp_clamped(float d)
{
    /* d = k ln 2 + r with |r| <= ln 2 / 2; ln 2 in two parts, so that k times the first is exact */
    int32_t k = (int32_t)(d * 1.44269504f - 0.5f);
    float r = d - (float)k * 0x1.62e4p-1f - (float)k * 0x1.7f7d1cp-20f;
    float p = 1.0f / 5040; /* Taylor series: the first omitted term is 5e-9 */
    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    uint32_t bits = (uint32_t)(k + 127) << 23; /* 2^k for k >= -126; 0 for the -127 of -88 */
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    return p * scale;
}

float bz_exp_f32(float x)
{
    return exp_clamped(clamp(x));
}

static float max_of(const float *row, uint32_t n)
{
    float max[LANES];
    for (uint32_t k = 0; k < LANES; k++) {
        max[k] = -INFINITY;
    }
    uint32_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        for (uint32_t k = 0; k < LANES; k++) {
            max[k] = row[i + k] > max[k] ? row[i + k] : max[k];
        }
    }
    for (; i < n; i++) {
        max[0] = row[i] > max[0] ? row[i] : max[0];
    }
    for (uint32_t k = 1; k < LANES; k++) {
        max[0] = max[k] > max[0] ? max[k] : max[0];
    }
    return max[0] > FLT_MAX ? FLT_MAX : max[0];
}

bz_exp_sum bz_sum_exp(const float *row, uint32_t n)
{
    const float max = max_of(row, n);
    if (max == -INFINITY) {
        return (bz_exp_sum){max, 0};
    }
    double sum[LANES] = {0};
    for (uint32_t i = 0; i < n; i += BLOCK) {
        float term[BLOCK];
        uint32_t count = n - i < BLOCK ? n - i : BLOCK;
        for (uint32_t k = 0; k < count; k++) {
            term[k] = clamp(row[i + k] - max);
        }
        for (uint32_t k = 0; k < count; k++) { /* a loop of its own, so that both vectorise */
            term[k] = exp_clamped(term[k]);
        }
        uint32_t whole = count - count % LANES;
        for (uint32_t k = 0; k < whole; k += LANES) {
            for (uint32_t lane = 0; lane < LANES; lane++) {
                sum[lane] += (double)term[k + lane];
            }
        }
        for (uint32_t k = whole; k < count; k++) {
            sum[0] += (double)term[k];
        }
    }
    double total = 0;
    for (uint32_t lane = 0; lane < LANES; lane++) {
        total += sum[lane];
    }
    return (bz_exp_sum){max, total};
}

bool bz_any_finite(const float *row, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (isfinite(row[i])) {
            return true;
        }
    }
    return false;
}
