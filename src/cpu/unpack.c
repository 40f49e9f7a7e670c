/* Unpacks the blocks of every quantized type to int8 values with f32 scales and minima. */
#include "cpu/unpack.h"

#include <string.h>

#include "file/blocks.h"

/* Scales and minima are computed by the same f32 products as in file/quant.c, so that s * q - m is
 * bit-equal to the dequantized value.
 *
 * The loops over bytes shift by constants and write through `restrict`, so that compilers
 * vectorise them. */

static const int8_t iq4_values[16] = {BZ_IQ4_VALUES};
static const int8_t mxfp4_values[16] = {BZ_MXFP4_VALUES};

static float half_at(const uint8_t *p)
{
    return bz_f16_to_f32(bz_le16(p));
}

static void nibbles(const uint8_t *bytes, int offset, int8_t *restrict q)
{
    for (int j = 0; j < 16; j++) {
        q[j] = (int8_t)((bytes[j] & 15) - offset);
        q[j + 16] = (int8_t)((bytes[j] >> 4) - offset);
    }
}

static void nibbles_by_table(const uint8_t *bytes, const int8_t *table, int8_t *q)
{
    for (int j = 0; j < 16; j++) {
        q[j] = table[bytes[j] & 15];
        q[j + 16] = table[bytes[j] >> 4];
    }
}

static void add_fifth_bits(const uint8_t *high, int8_t *q)
{
    uint32_t bits = bz_le32(high);
    for (int j = 0; j < 32; j++)
        q[j] = (int8_t)(q[j] + (int)((bits >> j & 1) << 4));
}

static void q8_0(const bz_block_q8_0 *b, bz_w8 w)
{
    w.s[0] = w.s[1] = half_at(b->d);
    memcpy(w.q, b->q, 32);
}

static void q4_0(const bz_block_q4_0 *b, bz_w8 w)
{
    w.s[0] = w.s[1] = half_at(b->d);
    nibbles(b->q, 8, w.q);
}

static void q4_1(const bz_block_q4_1 *b, bz_w8 w)
{
    w.s[0] = w.s[1] = half_at(b->d);
    w.m[0] = w.m[1] = -half_at(b->m);
    nibbles(b->q, 0, w.q);
}

static void q5_0(const bz_block_q5_0 *b, bz_w8 w)
{
    w.s[0] = w.s[1] = half_at(b->d);
    nibbles(b->q, 16, w.q);
    add_fifth_bits(b->high, w.q);
}

static void q5_1(const bz_block_q5_1 *b, bz_w8 w)
{
    w.s[0] = w.s[1] = half_at(b->d);
    w.m[0] = w.m[1] = -half_at(b->m);
    nibbles(b->q, 0, w.q);
    add_fifth_bits(b->high, w.q);
}

static void iq4_nl(const bz_block_q4_0 *b, bz_w8 w)
{
    w.s[0] = w.s[1] = half_at(b->d);
    nibbles_by_table(b->q, iq4_values, w.q);
}

static void mxfp4(const bz_block_mxfp4 *b, bz_w8 w)
{
    uint32_t bits = bz_mxfp4_scale_bits(b->e);
    memcpy(&w.s[0], &bits, sizeof bits);
    w.s[1] = w.s[0];
    nibbles_by_table(b->q, mxfp4_values, w.q);
}

static void q2_k(const bz_block_q2_k *b, bz_w8 w)
{
    float d = half_at(b->d), dmin = half_at(b->dmin);
    for (int g = 0; g < 16; g++) {
        w.s[g] = d * (float)(b->scales[g] & 15);
        w.m[g] = dmin * (float)(b->scales[g] >> 4);
    }
    for (int n = 0; n < 2; n++) {
        const uint8_t *bytes = b->q + 32 * n;
        int8_t *restrict q = w.q + 128 * n;
        for (int l = 0; l < 32; l++) {
            q[l] = (int8_t)(bytes[l] & 3);
            q[l + 32] = (int8_t)(bytes[l] >> 2 & 3);
            q[l + 64] = (int8_t)(bytes[l] >> 4 & 3);
            q[l + 96] = (int8_t)(bytes[l] >> 6);
        }
    }
}

static void q3_k(const bz_block_q3_k *b, bz_w8 w)
{
    float d = half_at(b->d);
    uint32_t scales[4];
    bz_q3_k_scales(b->scales, scales);
    for (int g = 0; g < 16; g++)
        w.s[g] = d * (float)((int)(scales[g / 4] >> (8 * (g % 4)) & 63) - 32);
    for (int n = 0; n < 2; n++) {
        const uint8_t *low = b->q + 32 * n;
        int8_t *restrict q = w.q + 128 * n;
        for (int l = 0; l < 32; l++) {
            int high = b->high[l] >> (4 * n);
            q[l] = (int8_t)(((low[l] & 3) | (high << 2 & 4)) - 4);
            q[l + 32] = (int8_t)(((low[l] >> 2 & 3) | (high << 1 & 4)) - 4);
            q[l + 64] = (int8_t)(((low[l] >> 4 & 3) | (high & 4)) - 4);
            q[l + 96] = (int8_t)(((low[l] >> 6) | (high >> 1 & 4)) - 4);
        }
    }
}

/* Both halves of a group of 32 get the group's scale and minimum. */
static void scales_q4_k(const uint8_t *d, const uint8_t *dmin, const uint8_t *bytes, bz_w8 w)
{
    float scale = half_at(d), min = half_at(dmin);
    uint32_t scales[2], minima[2];
    bz_q4_k_scales(bytes, scales, minima);
    for (int g = 0; g < 8; g++) {
        int at = 8 * (g % 4);
        w.s[2 * g] = w.s[2 * g + 1] = scale * (float)(scales[g / 4] >> at & 63);
        w.m[2 * g] = w.m[2 * g + 1] = min * (float)(minima[g / 4] >> at & 63);
    }
}

static void q4_k(const bz_block_q4_k *b, bz_w8 w)
{
    scales_q4_k(b->d, b->dmin, b->scales, w);
    for (int c = 0; c < 4; c++) {
        const uint8_t *bytes = b->q + 32 * c;
        int8_t *restrict q = w.q + 64 * c;
        for (int l = 0; l < 32; l++) {
            q[l] = (int8_t)(bytes[l] & 15);
            q[l + 32] = (int8_t)(bytes[l] >> 4);
        }
    }
}

static void q5_k(const bz_block_q5_k *b, bz_w8 w)
{
    scales_q4_k(b->d, b->dmin, b->scales, w);
    for (int c = 0; c < 4; c++) {
        const uint8_t *low = b->q + 32 * c;
        int8_t *restrict q = w.q + 64 * c;
        for (int l = 0; l < 32; l++) {
            int high = b->high[l] >> (2 * c);
            q[l] = (int8_t)((low[l] & 15) | (high << 4 & 16));
            q[l + 32] = (int8_t)(low[l] >> 4 | (high << 3 & 16));
        }
    }
}

static void q6_k(const bz_block_q6_k *b, bz_w8 w)
{
    float d = half_at(b->d);
    for (int g = 0; g < 16; g++)
        w.s[g] = d * (float)(int8_t)b->scales[g];
    for (int n = 0; n < 2; n++) {
        const uint8_t *low = b->low + 64 * n, *high = b->high + 32 * n;
        int8_t *restrict q = w.q + 128 * n;
        for (int l = 0; l < 32; l++) {
            q[l] = (int8_t)(((low[l] & 15) | (high[l] << 4 & 48)) - 32);
            q[l + 32] = (int8_t)(((low[l + 32] & 15) | (high[l] << 2 & 48)) - 32);
            q[l + 64] = (int8_t)((low[l] >> 4 | (high[l] & 48)) - 32);
            q[l + 96] = (int8_t)((low[l + 32] >> 4 | (high[l] >> 2 & 48)) - 32);
        }
    }
}

static void iq4_xs(const bz_block_iq4_xs *b, bz_w8 w)
{
    float d = half_at(b->d);
    uint32_t scales[2];
    bz_iq4_xs_scales(b, scales);
    for (int g = 0; g < 8; g++) {
        int scale = (int)(scales[g / 4] >> (8 * (g % 4)) & 63);
        w.s[2 * g] = w.s[2 * g + 1] = d * (float)(scale - 32);
        nibbles_by_table(b->q + 16 * g, iq4_values, w.q + 32 * g);
    }
}

#include "cpu/unpack_each.h"

void bz_unpack_plain(bz_type type, const void *blocks, bz_w8 out, size_t n)
{
    unpack(type, blocks, out, n);
}
