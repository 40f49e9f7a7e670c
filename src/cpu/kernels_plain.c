/* The kernels in plain C, written so that compilers vectorise them without reordering sums: eight
 * running sums side by side, added pairwise at the end. No fused multiply-add, no library calls:
 * the same bits on every machine. */
#include <string.h>

#include "cpu/exp.h"
#include "cpu/kernels.h"
#include "cpu/unpack.h"

enum { LANES = 8 };

static float from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t to_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float fold(float *sum)
{
    for (size_t half = LANES / 2; half > 0; half /= 2)
        for (size_t j = 0; j < half; j++)
            sum[j] += sum[j + half];
    return sum[0];
}

/* ---- f32 ---- */

static float dot_one(const float *restrict w, const float *restrict x, size_t k)
{
    float sum[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= k; i += LANES)
        for (size_t j = 0; j < LANES; j++)
            sum[j] += w[i + j] * x[i + j];
    for (size_t j = 0; i + j < k; j++)
        sum[j] += w[i + j] * x[i + j];
    return fold(sum);
}

static void dot(const float *w, const float *x, size_t stride, size_t rows, size_t k, float *out)
{
    for (size_t r = 0; r < rows; r++)
        out[r] = dot_one(w, x + r * stride, k);
}

static float sum_squares(const float *x, size_t n)
{
    return dot_one(x, x, n);
}

static void axpy(float a, const float *restrict v, float *restrict out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] += a * v[i];
}

/* ---- f16 ---- */

/* bz_f16_to_f32 with selections instead of branches, so that it vectorises. */
static inline float half_value(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16, rest = (uint32_t)(half & 0x7FFFu) << 13;
    uint32_t small = to_bits(from_bits(rest + (113u << 23)) - from_bits(113u << 23));
    uint32_t bits = rest < 1u << 23 ? small : rest + (112u << 23);
    uint32_t special = rest >= 31u << 23 ? 0x7F800000u : 0;
    return from_bits(bits | special | sign);
}

static float dot_f16(const float *restrict q, const uint16_t *restrict k, size_t n)
{
    float sum[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t j = 0; j < LANES; j++)
            sum[j] += q[i + j] * half_value(k[i + j]);
    for (size_t j = 0; i + j < n; j++)
        sum[j] += q[i + j] * half_value(k[i + j]);
    return fold(sum);
}

static void axpy_f16(float a, const uint16_t *restrict v, float *restrict out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] += a * half_value(v[i]);
}

static void to_f16(const float *restrict x, uint16_t *restrict out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = bz_f32_to_f16(x[i]);
}

/* ---- int8 ---- */

/* The largest magnitude is found by comparing bit patterns, where NaN is above infinity and not
 * lost. A group with NaN or infinity gets q = 0 and d = NaN, so that no conversion is undefined and
 * the product is NaN. A group below 2^-100 becomes zero: 127 / max must stay finite. */
static void quantize(const float *restrict x, bz_q8 out, size_t n)
{
    for (size_t g = 0; g < n / 32; g++) {
        const float *v = x + 32 * g;
        int8_t *restrict q = out.q + 32 * g;
        uint32_t largest = 0;
        for (size_t j = 0; j < 32; j++) {
            uint32_t magnitude = to_bits(v[j]) & 0x7FFFFFFFu;
            largest = magnitude > largest ? magnitude : largest;
        }
        bool finite = largest < 0x7F800000u, tiny = largest < 27u << 23;
        float max = from_bits(largest), d = !finite ? from_bits(0x7FC00000u)
                                            : tiny  ? 0.0f
                                                    : max / 127.0f;
        out.d[g] = d;
        if (!finite || tiny) {
            memset(q, 0, 32);
            out.sum[2 * g] = out.sum[2 * g + 1] = d;
            continue;
        }
        float inverse = 127.0f / max;
        for (size_t j = 0; j < 32; j++) {
            /* Adding the float just below 0.5 away from zero and truncating rounds ties away from
             * zero, while 0.49999997 still becomes 0. */
            float scaled = v[j] * inverse;
            uint32_t sign = to_bits(scaled) & 0x80000000u;
            q[j] = (int8_t)(int32_t)(scaled + from_bits(sign | 0x3EFFFFFFu));
        }
        for (size_t h = 0; h < 2; h++) {
            int32_t sum = 0;
            for (size_t j = 0; j < 16; j++)
                sum += q[16 * h + j];
            out.sum[2 * g + h] = d * (float)sum;
        }
    }
}

static int32_t products16(const int8_t *restrict a, const int8_t *restrict b)
{
    int32_t sum = 0;
    for (size_t j = 0; j < 16; j++)
        sum += (int32_t)a[j] * b[j];
    return sum;
}

static float dot8_one(bz_w8 w, bool has_min, bz_q8 x, size_t k)
{
    float even = 0, odd = 0, low = 0;
    for (size_t g = 0; g < k / 32; g++) {
        even += (float)products16(w.q + 32 * g, x.q + 32 * g) * (w.s[2 * g] * x.d[g]);
        odd += (float)products16(w.q + 32 * g + 16, x.q + 32 * g + 16) * (w.s[2 * g + 1] * x.d[g]);
    }
    if (has_min)
        low = dot_one(w.m, x.sum, k / 16);
    return even + odd - low;
}

static void dot8(bz_w8 w, bool has_min, const bz_q8 *x, size_t rows, size_t k, float *out)
{
    for (size_t r = 0; r < rows; r++)
        out[r] = dot8_one(w, has_min, x[r], k);
}

/* ---- towers ---- */

static void panel(const float *restrict a, size_t stride_a, size_t rows, const float *restrict b,
                  size_t k, float *restrict out, size_t stride_out, size_t cols)
{
    for (; rows > 0; rows--, a += stride_a, out += stride_out) {
        float sum[BZ_PANEL] = {0};
        for (size_t first = 0; first < k; first += BZ_PANEL_RUN) {
            const size_t end = k - first < BZ_PANEL_RUN ? k : first + BZ_PANEL_RUN;
            float run[BZ_PANEL] = {0};
            for (size_t i = first; i < end; i++)
                for (size_t c = 0; c < BZ_PANEL; c++)
                    run[c] += a[i] * b[BZ_PANEL * i + c];
            for (size_t c = 0; c < BZ_PANEL; c++)
                sum[c] += run[c];
        }
        memcpy(out, sum, cols * sizeof *out);
    }
}

float bz_exp_sum_plain(float *x, size_t n)
{
    float high = x[0], sum[LANES] = {0};
    size_t i = 0;
    for (size_t j = 1; j < n; j++)
        high = x[j] > high ? x[j] : high;
    for (size_t j = 0; j < n; j++)
        x[j] = bz_exp(x[j] - high);
    for (; i + LANES <= n; i += LANES)
        for (size_t j = 0; j < LANES; j++)
            sum[j] += x[i + j];
    for (size_t j = 0; i + j < n; j++)
        sum[j] += x[i + j];
    return fold(sum);
}

void bz_gelu_mul_plain(const float *gate, const float *up, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = gate[i] * up[i] / (1.0f + bz_exp(-bz_gelu_angle(gate[i])));
}

void bz_silu_plain(const float *x, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = x[i] / (1.0f + bz_exp(-x[i]));
}

/* cap * tanh(y) = cap - 2 cap / (1 + e^(2y)), y = x / cap */
void bz_softcap_plain(const float *x, float cap, float *out, size_t n)
{
    const float part = 1.0f / cap, twice = 2.0f * cap;
    for (size_t i = 0; i < n; i++) {
        const float y = x[i] * part, large = cap - twice / (1.0f + bz_exp(2.0f * y));
        out[i] = y > -BZ_TANH_SMALL && y < BZ_TANH_SMALL ? cap * bz_tanh_small(y) : large;
    }
}

const bz_kernels bz_kernels_plain = {
    .name = "plain",
    .dequantize = bz_dequantize,
    .unpack = bz_unpack_plain,
    .quantize = quantize,
    .dot = dot,
    .dot8 = dot8,
    .sum_squares = sum_squares,
    .dot_f16 = dot_f16,
    .axpy = axpy,
    .axpy_f16 = axpy_f16,
    .to_f16 = to_f16,
    .panel = panel,
    .exp_sum = bz_exp_sum_plain,
    .gelu_mul = bz_gelu_mul_plain,
    .silu = bz_silu_plain,
    .softcap = bz_softcap_plain,
};
