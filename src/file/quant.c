/* Table of the block types, f16 and bf16 conversion, and dequantization of every type. */
#include "file/quant.h"

#include <string.h>

#include "file/blocks.h"

/* ---- types ---- */

static const bz_type_info types[BZ_TYPE_END] = {
    [BZ_F32] = {"F32", 1, 4, true},
    [BZ_F16] = {"F16", 1, 2, true},
    [BZ_Q4_0] = {"Q4_0", 32, 18, true},
    [BZ_Q4_1] = {"Q4_1", 32, 20, true},
    [BZ_Q5_0] = {"Q5_0", 32, 22, true},
    [BZ_Q5_1] = {"Q5_1", 32, 24, true},
    [BZ_Q8_0] = {"Q8_0", 32, 34, true},
    [9] = {"Q8_1", 32, 36, false},
    [BZ_Q2_K] = {"Q2_K", 256, 84, true},
    [BZ_Q3_K] = {"Q3_K", 256, 110, true},
    [BZ_Q4_K] = {"Q4_K", 256, 144, true},
    [BZ_Q5_K] = {"Q5_K", 256, 176, true},
    [BZ_Q6_K] = {"Q6_K", 256, 210, true},
    [15] = {"Q8_K", 256, 292, false},
    [16] = {"IQ2_XXS", 256, 66, false},
    [17] = {"IQ2_XS", 256, 74, false},
    [18] = {"IQ3_XXS", 256, 98, false},
    [19] = {"IQ1_S", 256, 50, false},
    [BZ_IQ4_NL] = {"IQ4_NL", 32, 18, true},
    [21] = {"IQ3_S", 256, 110, false},
    [22] = {"IQ2_S", 256, 82, false},
    [BZ_IQ4_XS] = {"IQ4_XS", 256, 136, true},
    [24] = {"I8", 1, 1, false},
    [25] = {"I16", 1, 2, false},
    [BZ_I32] = {"I32", 1, 4, false},
    [BZ_I64] = {"I64", 1, 8, false},
    [28] = {"F64", 1, 8, false},
    [29] = {"IQ1_M", 256, 56, false},
    [BZ_BF16] = {"BF16", 1, 2, true},
    [34] = {"TQ1_0", 256, 54, false},
    [35] = {"TQ2_0", 256, 66, false},
    [BZ_MXFP4] = {"MXFP4", 32, 17, true},
    [40] = {"NVFP4", 64, 36, false},
    [41] = {"Q1_0", 128, 18, false},
    [42] = {"Q2_0", 64, 18, false},
};

const bz_type_info *bz_type_of(uint32_t id)
{
    return id < BZ_TYPE_END && types[id].name ? &types[id] : NULL;
}

size_t bz_row_bytes(bz_type type, uint64_t n)
{
    const bz_type_info *info = bz_type_of((uint32_t)type);
    return info ? (size_t)(n / info->block_values * info->block_bytes) : 0;
}

/* ---- 16-bit floats ---- */

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

/* The exponent's bias changes from 15 to 127. Subnormals get an implicit one of weight 2^-14,
 * which is subtracted again: this normalizes them without a loop. NaNs become quiet, as in the
 * processors' conversions. */
float bz_f16_to_f32(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t rest = (uint32_t)(half & 0x7FFFu) << 13; /* exponent and mantissa */
    if (rest >= 31u << 23)
        return from_bits(sign | 0x7F800000u | rest | (rest > 31u << 23 ? 0x00400000u : 0));
    if (rest >= 1u << 23)
        return from_bits(sign | (rest + (112u << 23)));
    float small = from_bits(rest + (113u << 23)) - from_bits(113u << 23);
    return from_bits(sign | to_bits(small));
}

uint16_t bz_f32_to_f16(float value)
{
    uint32_t bits = to_bits(value), sign = bits >> 16 & 0x8000u, rest = bits & 0x7FFFFFFFu;
    uint32_t half;
    if (rest > 0x7F800000u) /* NaN: quiet, keeps the top of its payload */
        half = 0x7E00u | (rest >> 13 & 0x03FFu);
    else if (rest >= (127u + 16u) << 23) /* 65536 and more */
        half = 0x7C00u;
    else if (rest >= (127u - 14u) << 23) /* a carry out of the mantissa is right, up to infinity */
        half = (rest - (112u << 23) + 0x0FFFu + (rest >> 13 & 1u)) >> 13;
    else /* one ulp of 0.5f is 2^-24, the ulp of a subnormal f16: the addition rounds */
        half = to_bits(from_bits(rest) + 0.5f) - to_bits(0.5f);
    return (uint16_t)(sign | half);
}

float bz_bf16_to_f32(uint16_t word)
{
    return from_bits((uint32_t)word << 16);
}

/* ---- blocks ----
 *
 * One function per type, one block at a time. The order of the multiplications is part of the
 * definition: fast kernels must produce the same bits.
 */

static const int8_t iq4_values[16] = {BZ_IQ4_VALUES};
static const int8_t mxfp4_values[16] = {BZ_MXFP4_VALUES};

static float half_at(const uint8_t *p)
{
    return bz_f16_to_f32(bz_le16(p));
}

static void q8_0(const bz_block_q8_0 *b, float *x)
{
    float d = half_at(b->d);
    for (int j = 0; j < 32; j++)
        x[j] = d * (float)(int8_t)b->q[j];
}

static void q4_0(const bz_block_q4_0 *b, float *x)
{
    float d = half_at(b->d);
    for (int j = 0; j < 16; j++) {
        x[j] = d * (float)((b->q[j] & 15) - 8);
        x[j + 16] = d * (float)((b->q[j] >> 4) - 8);
    }
}

static void q4_1(const bz_block_q4_1 *b, float *x)
{
    float d = half_at(b->d), m = half_at(b->m);
    for (int j = 0; j < 16; j++) {
        x[j] = d * (float)(b->q[j] & 15) + m;
        x[j + 16] = d * (float)(b->q[j] >> 4) + m;
    }
}

static int fifth_bit(uint32_t high, int i)
{
    return (int)(high >> i & 1) << 4;
}

static void q5_0(const bz_block_q5_0 *b, float *x)
{
    float d = half_at(b->d);
    uint32_t high = bz_le32(b->high);
    for (int j = 0; j < 16; j++) {
        x[j] = d * (float)(((b->q[j] & 15) | fifth_bit(high, j)) - 16);
        x[j + 16] = d * (float)(((b->q[j] >> 4) | fifth_bit(high, j + 16)) - 16);
    }
}

static void q5_1(const bz_block_q5_1 *b, float *x)
{
    float d = half_at(b->d), m = half_at(b->m);
    uint32_t high = bz_le32(b->high);
    for (int j = 0; j < 16; j++) {
        x[j] = d * (float)((b->q[j] & 15) | fifth_bit(high, j)) + m;
        x[j + 16] = d * (float)((b->q[j] >> 4) | fifth_bit(high, j + 16)) + m;
    }
}

static void table16(float d, const int8_t *table, const uint8_t *q, float *x)
{
    for (int j = 0; j < 16; j++) {
        x[j] = d * (float)table[q[j] & 15];
        x[j + 16] = d * (float)table[q[j] >> 4];
    }
}

static void iq4_nl(const bz_block_q4_0 *b, float *x)
{
    table16(half_at(b->d), iq4_values, b->q, x);
}

static void mxfp4(const bz_block_mxfp4 *b, float *x)
{
    table16(from_bits(bz_mxfp4_scale_bits(b->e)), mxfp4_values, b->q, x);
}

static void q2_k(const bz_block_q2_k *b, float *x)
{
    float d = half_at(b->d), dmin = half_at(b->dmin);
    for (int g = 0; g < 16; g++) { /* of 16 values; n = g/8 picks the half, r = g/2%4 the bits */
        const uint8_t *q = b->q + 32 * (g / 8) + 16 * (g % 2);
        int shift = 2 * (g / 2 % 4);
        float s = d * (float)(b->scales[g] & 15), m = dmin * (float)(b->scales[g] >> 4);
        for (int l = 0; l < 16; l++)
            x[16 * g + l] = s * (float)(q[l] >> shift & 3) - m;
    }
}

static void q3_k(const bz_block_q3_k *b, float *x)
{
    float d = half_at(b->d);
    uint32_t scales[4];
    bz_q3_k_scales(b->scales, scales);
    for (int g = 0; g < 16; g++) {
        const uint8_t *q = b->q + 32 * (g / 8) + 16 * (g % 2), *high = b->high + 16 * (g % 2);
        int shift = 2 * (g / 2 % 4), bit = g / 2;
        float s = d * (float)((int)(scales[g / 4] >> (8 * (g % 4)) & 63) - 32);
        for (int l = 0; l < 16; l++)
            x[16 * g + l] = s * (float)(((q[l] >> shift & 3) | (high[l] >> bit & 1) << 2) - 4);
    }
}

static void q4_k(const bz_block_q4_k *b, float *x)
{
    float d = half_at(b->d), dmin = half_at(b->dmin);
    uint32_t scales[2], minima[2];
    bz_q4_k_scales(b->scales, scales, minima);
    for (int g = 0; g < 8; g++) { /* of 32 values */
        const uint8_t *q = b->q + 32 * (g / 2);
        int shift = 4 * (g % 2), at = 8 * (g % 4);
        float s = d * (float)(scales[g / 4] >> at & 63),
              m = dmin * (float)(minima[g / 4] >> at & 63);
        for (int l = 0; l < 32; l++)
            x[32 * g + l] = s * (float)(q[l] >> shift & 15) - m;
    }
}

static void q5_k(const bz_block_q5_k *b, float *x)
{
    float d = half_at(b->d), dmin = half_at(b->dmin);
    uint32_t scales[2], minima[2];
    bz_q4_k_scales(b->scales, scales, minima);
    for (int g = 0; g < 8; g++) {
        const uint8_t *q = b->q + 32 * (g / 2);
        int shift = 4 * (g % 2), at = 8 * (g % 4);
        float s = d * (float)(scales[g / 4] >> at & 63),
              m = dmin * (float)(minima[g / 4] >> at & 63);
        for (int l = 0; l < 32; l++)
            x[32 * g + l] = s * (float)((q[l] >> shift & 15) | (b->high[l] >> g & 1) << 4) - m;
    }
}

static void q6_k(const bz_block_q6_k *b, float *x)
{
    float d = half_at(b->d);
    for (int g = 0; g < 16; g++) { /* of 16 values; n = g/8, r = g/2%4 as in Q2_K */
        int n = g / 8, r = g / 2 % 4, half = 16 * (g % 2);
        const uint8_t *low = b->low + 64 * n + 32 * (r & 1) + half, *high = b->high + 32 * n + half;
        float s = d * (float)(int8_t)b->scales[g];
        for (int l = 0; l < 16; l++)
            x[16 * g + l] =
                s * (float)(((low[l] >> (4 * (r / 2)) & 15) | (high[l] >> (2 * r) & 3) << 4) - 32);
    }
}

static void iq4_xs(const bz_block_iq4_xs *b, float *x)
{
    float d = half_at(b->d);
    uint32_t scales[2];
    bz_iq4_xs_scales(b, scales);
    for (int g = 0; g < 8; g++) {
        int scale = (int)(scales[g / 4] >> (8 * (g % 4)) & 63);
        table16(d * (float)(scale - 32), iq4_values, b->q + 16 * g, x + 32 * g);
    }
}

/* Calls function(block, out) for n values, `values` per block. */
#define EACH_BLOCK(block, values, function)                                                        \
    do {                                                                                           \
        const block *b = blocks;                                                                   \
        for (size_t i = 0; i < n; i += (values))                                                   \
            function(b++, out + i);                                                                \
    } while (0)

void bz_dequantize(bz_type type, const void *blocks, float *out, size_t n)
{
    const uint8_t *bytes = blocks;
    switch (type) {
    case BZ_F32: memcpy(out, bytes, n * sizeof *out); break;
    case BZ_F16:
        for (size_t i = 0; i < n; i++)
            out[i] = half_at(bytes + 2 * i);
        break;
    case BZ_BF16:
        for (size_t i = 0; i < n; i++)
            out[i] = bz_bf16_to_f32(bz_le16(bytes + 2 * i));
        break;
    case BZ_Q8_0: EACH_BLOCK(bz_block_q8_0, 32, q8_0); break;
    case BZ_Q4_0: EACH_BLOCK(bz_block_q4_0, 32, q4_0); break;
    case BZ_Q4_1: EACH_BLOCK(bz_block_q4_1, 32, q4_1); break;
    case BZ_Q5_0: EACH_BLOCK(bz_block_q5_0, 32, q5_0); break;
    case BZ_Q5_1: EACH_BLOCK(bz_block_q5_1, 32, q5_1); break;
    case BZ_Q2_K: EACH_BLOCK(bz_block_q2_k, 256, q2_k); break;
    case BZ_Q3_K: EACH_BLOCK(bz_block_q3_k, 256, q3_k); break;
    case BZ_Q4_K: EACH_BLOCK(bz_block_q4_k, 256, q4_k); break;
    case BZ_Q5_K: EACH_BLOCK(bz_block_q5_k, 256, q5_k); break;
    case BZ_Q6_K: EACH_BLOCK(bz_block_q6_k, 256, q6_k); break;
    case BZ_IQ4_NL: EACH_BLOCK(bz_block_q4_0, 32, iq4_nl); break;
    case BZ_IQ4_XS: EACH_BLOCK(bz_block_iq4_xs, 256, iq4_xs); break;
    case BZ_MXFP4: EACH_BLOCK(bz_block_mxfp4, 32, mxfp4); break;
    case BZ_I32:
    case BZ_I64:
    case BZ_TYPE_END: break;
    }
}
