/* Byte layouts of the quantized blocks in GGUF files.
 *
 * Every member is an array of bytes, so the structs have no padding and no alignment, and can
 * be overlaid on a file's bytes on any machine.
 */
#ifndef BZ_FILE_BLOCKS_H
#define BZ_FILE_BLOCKS_H

#include <assert.h>

#include "base/little.h"

typedef struct bz_block_q8_0 {
    uint8_t d[2];  /* f16, like every d, m and dmin below */
    uint8_t q[32]; /* int8 */
} bz_block_q8_0;

typedef struct bz_block_q4_0 { /* also IQ4_NL */
    uint8_t d[2];
    uint8_t q[16]; /* low nibbles: values 0..15, high nibbles: 16..31 */
} bz_block_q4_0;

typedef struct bz_block_q4_1 {
    uint8_t d[2], m[2];
    uint8_t q[16];
} bz_block_q4_1;

typedef struct bz_block_q5_0 {
    uint8_t d[2];
    uint8_t high[4]; /* bit i: fifth bit of value i */
    uint8_t q[16];
} bz_block_q5_0;

typedef struct bz_block_q5_1 {
    uint8_t d[2], m[2];
    uint8_t high[4];
    uint8_t q[16];
} bz_block_q5_1;

typedef struct bz_block_mxfp4 {
    uint8_t e; /* scale 2^(e-127) */
    uint8_t q[16];
} bz_block_mxfp4;

typedef struct bz_block_q2_k {
    uint8_t scales[16]; /* low nibble scale, high nibble minimum, per 16 values */
    uint8_t q[64];
    uint8_t d[2], dmin[2];
} bz_block_q2_k;

typedef struct bz_block_q3_k {
    uint8_t high[32]; /* third bits */
    uint8_t q[64];
    uint8_t scales[12]; /* sixteen of 6 bits */
    uint8_t d[2];
} bz_block_q3_k;

typedef struct bz_block_q4_k {
    uint8_t d[2], dmin[2];
    uint8_t scales[12]; /* eight scales and eight minima of 6 bits */
    uint8_t q[128];
} bz_block_q4_k;

typedef struct bz_block_q5_k {
    uint8_t d[2], dmin[2];
    uint8_t scales[12];
    uint8_t high[32]; /* fifth bits */
    uint8_t q[128];
} bz_block_q5_k;

typedef struct bz_block_q6_k {
    uint8_t low[128], high[64];
    uint8_t scales[16]; /* int8, per 16 values */
    uint8_t d[2];
} bz_block_q6_k;

typedef struct bz_block_iq4_xs {
    uint8_t d[2];
    uint8_t scales_high[2]; /* two bits per 32 values */
    uint8_t scales_low[4];  /* four bits per 32 values */
    uint8_t q[128];
} bz_block_iq4_xs;

static_assert(sizeof(bz_block_q8_0) == 34, "Q8_0");
static_assert(sizeof(bz_block_q4_0) == 18, "Q4_0");
static_assert(sizeof(bz_block_q4_1) == 20, "Q4_1");
static_assert(sizeof(bz_block_q5_0) == 22, "Q5_0");
static_assert(sizeof(bz_block_q5_1) == 24, "Q5_1");
static_assert(sizeof(bz_block_mxfp4) == 17, "MXFP4");
static_assert(sizeof(bz_block_q2_k) == 84, "Q2_K");
static_assert(sizeof(bz_block_q3_k) == 110, "Q3_K");
static_assert(sizeof(bz_block_q4_k) == 144, "Q4_K");
static_assert(sizeof(bz_block_q5_k) == 176, "Q5_K");
static_assert(sizeof(bz_block_q6_k) == 210, "Q6_K");
static_assert(sizeof(bz_block_iq4_xs) == 136, "IQ4_XS");

/* The 16 values of IQ4_NL and IQ4_XS. */
#define BZ_IQ4_VALUES -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113
/* Twice the 16 values of E2M1. */
#define BZ_MXFP4_VALUES 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12

/* Sixteen 6-bit scales of Q3_K, before subtracting 32: byte k & 3 of words[k >> 2] is scale k.
 * The low four bits of all scales are in the first eight bytes, the high two in the last four. */
static inline void bz_q3_k_scales(const uint8_t *bytes, uint32_t words[4])
{
    uint32_t a = bz_le32(bytes), b = bz_le32(bytes + 4), high = bz_le32(bytes + 8);
    words[0] = (a & 0x0F0F0F0Fu) | (high & 0x03030303u) << 4;
    words[1] = (b & 0x0F0F0F0Fu) | (high >> 2 & 0x03030303u) << 4;
    words[2] = (a >> 4 & 0x0F0F0F0Fu) | (high >> 4 & 0x03030303u) << 4;
    words[3] = (b >> 4 & 0x0F0F0F0Fu) | (high >> 6 & 0x03030303u) << 4;
}

/* Eight 6-bit scales and minima of Q4_K and Q5_K: byte g & 3 of scales[g >> 2] is scale g,
 * the minima likewise. The high two bits of groups 4..7 are the high bits of the bytes of groups
 * 0..3. */
static inline void bz_q4_k_scales(const uint8_t *bytes, uint32_t scales[2], uint32_t minima[2])
{
    uint32_t a = bz_le32(bytes), b = bz_le32(bytes + 4), c = bz_le32(bytes + 8);
    scales[0] = a & 0x3F3F3F3Fu;
    minima[0] = b & 0x3F3F3F3Fu;
    scales[1] = (c & 0x0F0F0F0Fu) | (a >> 6 & 0x03030303u) << 4;
    minima[1] = (c >> 4 & 0x0F0F0F0Fu) | (b >> 6 & 0x03030303u) << 4;
}

/* Eight 6-bit scales of IQ4_XS, before subtracting 32: byte g & 3 of scales[g >> 2]. */
static inline void bz_iq4_xs_scales(const bz_block_iq4_xs *b, uint32_t scales[2])
{
    const uint32_t low = bz_le32(b->scales_low), high = bz_le16(b->scales_high);
    for (int half = 0; half < 2; half++) {
        uint32_t four = low >> (16 * half) & 0xFFFF, two = high >> (8 * half) & 0xFF;
        four = (four | four << 8) & 0x00FF00FF; /* four nibbles to four bytes */
        four = (four | four << 4) & 0x0F0F0F0F;
        two = (two | two << 12) & 0x000F000F; /* four pairs of bits likewise */
        two = (two | two << 6) & 0x03030303;
        scales[half] = four | two << 4;
    }
}

/* 2^(e-128), the multiplier for the doubled values of MXFP4. Exact for every e: the two
 * smallest are subnormal f32 numbers. */
static inline uint32_t bz_mxfp4_scale_bits(uint8_t e)
{
    return e >= 2 ? (uint32_t)(e - 1) << 23 : 0x00200000u << e;
}

#endif
