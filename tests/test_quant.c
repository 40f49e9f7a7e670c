/* Block formats against a second implementation of their definition: one function per format that
 * returns value i of a block from its bytes. */
#include "file/quant.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"

/* ---- the reference ---- */

static float half(const uint8_t *p)
{
    int bits = p[0] + 256 * p[1], sign = bits >> 15, exponent = bits >> 10 & 31,
        mantissa = bits & 1023;
    double value;
    if (exponent == 31)
        value = mantissa ? NAN : INFINITY;
    else if (exponent == 0)
        value = ldexp(mantissa, -24);
    else
        value = ldexp(1024 + mantissa, exponent - 25);
    return (float)(sign ? -value : value);
}

static int bit(const uint8_t *bytes, int i)
{
    return bytes[i / 8] >> (i % 8) & 1;
}

/* Nibble of value i in the 32-value formats. */
static int nibble32(const uint8_t *qs, int i)
{
    return i < 16 ? qs[i] & 15 : qs[i - 16] >> 4;
}

static float value_q2_k(const uint8_t *b, int i)
{
    int n = i / 128, r = i / 32 % 4, l = i % 32;
    int q = b[16 + 32 * n + l] >> (2 * r) & 3, s = b[8 * n + 2 * r + l / 16];
    float scale = half(b + 80) * (float)(s & 15), low = half(b + 82) * (float)(s >> 4);
    float product = scale * (float)q;
    return product - low;
}

static float value_q3_k(const uint8_t *b, int i)
{
    const uint8_t *hmask = b, *qs = b + 32, *sc = b + 96;
    int n = i / 128, r = i / 32 % 4, l = i % 32, k = 8 * n + 2 * r + l / 16;
    int low = qs[32 * n + l] >> (2 * r) & 3, high = hmask[l] >> (4 * n + r) & 1;
    int q = low - (high ? 0 : 4);
    int low4 = k < 8 ? sc[k] & 15 : sc[k - 8] >> 4, high2 = sc[8 + (k & 3)] >> (2 * (k >> 2)) & 3;
    float scale = half(b + 108) * (float)((low4 | high2 << 4) - 32);
    return scale * (float)q;
}

static float value_q45_k(const uint8_t *b, int i, bool five)
{
    const uint8_t *sc = b + 4, *qh = b + 16, *qs = b + (five ? 48 : 16);
    int g = i / 32, l = i % 32, byte = qs[32 * (g >> 1) + l];
    int q = g % 2 == 0 ? byte & 15 : byte >> 4, S, M;
    if (five)
        q += 16 * (qh[l] >> g & 1);
    if (g < 4) {
        S = sc[g] & 63;
        M = sc[g + 4] & 63;
    } else {
        S = (sc[g + 4] & 15) | (sc[g - 4] >> 6) << 4;
        M = (sc[g + 4] >> 4) | (sc[g] >> 6) << 4;
    }
    float scale = half(b) * (float)S, low = half(b + 2) * (float)M, product = scale * (float)q;
    return product - low;
}

static float value_q6_k(const uint8_t *b, int i)
{
    const uint8_t *ql = b, *qh = b + 128, *sc = b + 192;
    int n = i / 128, r = i / 32 % 4, l = i % 32;
    int byte = ql[64 * n + 32 * (r & 1) + l], nib = r < 2 ? byte & 15 : byte >> 4;
    int q = (nib | (qh[32 * n + l] >> (2 * r) & 3) << 4) - 32;
    float scale = half(b + 208) * (float)(int8_t)sc[8 * n + 2 * r + l / 16];
    return scale * (float)q;
}

static const int nl[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                           1,    13,   25,  38,  53,  69,  89,  113};

static float value_iq4_xs(const uint8_t *b, int i)
{
    int g = i / 32, sh = b[2] + 256 * b[3];
    int ls = (b[4 + g / 2] >> (4 * (g & 1)) & 15) | (sh >> (2 * g) & 3) << 4;
    float dl = half(b) * (float)(ls - 32);
    return dl * (float)nl[nibble32(b + 8 + 16 * g, i % 32)];
}

static float value_mxfp4(const uint8_t *b, int i)
{
    static const double e2m1[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    int nib = nibble32(b + 1, i);
    double value = ldexp(e2m1[nib & 7], b[0] - 127);
    return (float)(nib > 8 ? -value : value); /* the table has one zero */
}

static float value_of(bz_type type, const uint8_t *b, int i)
{
    float f;
    uint32_t word;
    switch (type) {
    case BZ_F32: memcpy(&f, b, 4); return f;
    case BZ_F16: return half(b);
    case BZ_BF16:
        word = (uint32_t)b[0] << 16 | (uint32_t)b[1] << 24;
        memcpy(&f, &word, 4);
        return f;
    case BZ_Q8_0: return half(b) * (float)(int8_t)b[2 + i];
    case BZ_Q4_0: return half(b) * (float)(nibble32(b + 2, i) - 8);
    case BZ_Q4_1: f = half(b) * (float)nibble32(b + 4, i); return f + half(b + 2);
    case BZ_Q5_0: return half(b) * (float)((nibble32(b + 6, i) | bit(b + 2, i) << 4) - 16);
    case BZ_Q5_1:
        f = half(b) * (float)(nibble32(b + 8, i) | bit(b + 4, i) << 4);
        return f + half(b + 2);
    case BZ_Q2_K: return value_q2_k(b, i);
    case BZ_Q3_K: return value_q3_k(b, i);
    case BZ_Q4_K: return value_q45_k(b, i, false);
    case BZ_Q5_K: return value_q45_k(b, i, true);
    case BZ_Q6_K: return value_q6_k(b, i);
    case BZ_IQ4_NL: return half(b) * (float)nl[nibble32(b + 2, i)];
    case BZ_IQ4_XS: return value_iq4_xs(b, i);
    case BZ_MXFP4: return value_mxfp4(b, i);
    case BZ_I32:
    case BZ_I64:
    case BZ_TYPE_END: break;
    }
    return NAN;
}

/* ---- helpers ---- */

static const bz_type running[] = {BZ_F32,  BZ_F16,    BZ_BF16,   BZ_Q8_0, BZ_Q4_0, BZ_Q4_1,
                                  BZ_Q5_0, BZ_Q5_1,   BZ_Q2_K,   BZ_Q3_K, BZ_Q4_K, BZ_Q5_K,
                                  BZ_Q6_K, BZ_IQ4_NL, BZ_IQ4_XS, BZ_MXFP4};
enum { N_RUNNING = sizeof running / sizeof *running };

static uint32_t seed = 1;

static uint8_t random_byte(void)
{
    seed = seed * 1664525u + 1013904223u;
    return (uint8_t)(seed >> 24);
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return bits;
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

/* Same number: same bits, or both NaN. */
static bool same(float a, float b)
{
    return bits_of(a) == bits_of(b) || (isnan(a) && isnan(b));
}

/* Offsets of a block's f16 fields; -1: none. */
static void half_fields(bz_type type, int at[2])
{
    at[0] = at[1] = -1;
    switch (type) {
    case BZ_F16:
    case BZ_Q8_0:
    case BZ_Q4_0:
    case BZ_Q5_0:
    case BZ_IQ4_NL:
    case BZ_IQ4_XS: at[0] = 0; break;
    case BZ_Q4_1:
    case BZ_Q5_1:
    case BZ_Q4_K:
    case BZ_Q5_K:
        at[0] = 0;
        at[1] = 2;
        break;
    case BZ_Q2_K:
        at[0] = 80;
        at[1] = 82;
        break;
    case BZ_Q3_K: at[0] = 108; break;
    case BZ_Q6_K: at[0] = 208; break;
    default: break;
    }
}

/* ---- cases ---- */

static void test_types(void)
{
    static const struct {
        uint32_t id;
        const char *name;
        uint32_t values, bytes;
        bool runs;
    } known[] = {{0, "F32", 1, 4, true},          {1, "F16", 1, 2, true},
                 {2, "Q4_0", 32, 18, true},       {3, "Q4_1", 32, 20, true},
                 {6, "Q5_0", 32, 22, true},       {7, "Q5_1", 32, 24, true},
                 {8, "Q8_0", 32, 34, true},       {9, "Q8_1", 32, 36, false},
                 {10, "Q2_K", 256, 84, true},     {11, "Q3_K", 256, 110, true},
                 {12, "Q4_K", 256, 144, true},    {13, "Q5_K", 256, 176, true},
                 {14, "Q6_K", 256, 210, true},    {15, "Q8_K", 256, 292, false},
                 {16, "IQ2_XXS", 256, 66, false}, {17, "IQ2_XS", 256, 74, false},
                 {18, "IQ3_XXS", 256, 98, false}, {19, "IQ1_S", 256, 50, false},
                 {20, "IQ4_NL", 32, 18, true},    {21, "IQ3_S", 256, 110, false},
                 {22, "IQ2_S", 256, 82, false},   {23, "IQ4_XS", 256, 136, true},
                 {24, "I8", 1, 1, false},         {25, "I16", 1, 2, false},
                 {26, "I32", 1, 4, false},        {27, "I64", 1, 8, false},
                 {28, "F64", 1, 8, false},        {29, "IQ1_M", 256, 56, false},
                 {30, "BF16", 1, 2, true},        {34, "TQ1_0", 256, 54, false},
                 {35, "TQ2_0", 256, 66, false},   {39, "MXFP4", 32, 17, true},
                 {40, "NVFP4", 64, 36, false},    {41, "Q1_0", 128, 18, false},
                 {42, "Q2_0", 64, 18, false}};
    begin("types: every known id with its sizes");
    size_t next = 0, count = sizeof known / sizeof *known;
    for (uint32_t id = 0; id < 300; id++) {
        const bz_type_info *info = bz_type_of(id);
        if (next < count && known[next].id == id) {
            if (CHECKF(info != NULL, "type %u is not known", id)) {
                CHECKF(strcmp(info->name, known[next].name) == 0, "type %u is called %s", id,
                       info->name);
                CHECKF(info->block_values == known[next].values, "%s values", info->name);
                CHECKF(info->block_bytes == known[next].bytes, "%s bytes", info->name);
                CHECKF(info->runs == known[next].runs, "%s runs", info->name);
            }
            next++;
        } else {
            CHECKF(info == NULL, "type %u should not be known", id);
        }
    }
    CHECK(next == count);
    CHECK(bz_type_of(UINT32_MAX) == NULL);

    begin("types: row bytes");
    CHECK(bz_row_bytes(BZ_F32, 7) == 28);
    CHECK(bz_row_bytes(BZ_Q4_K, 1536) == 864);
    CHECK(bz_row_bytes(BZ_Q5_0, 704) == 484);
    CHECK(bz_row_bytes(BZ_Q6_K, 0) == 0);
    CHECK(bz_row_bytes((bz_type)5, 256) == 0);
}

static void test_f16(void)
{
    begin("f16: every value decodes and round-trips");
    for (unsigned h = 0; h < 65536; h++) {
        uint8_t bytes[2] = {(uint8_t)h, (uint8_t)(h >> 8)};
        float got = bz_f16_to_f32((uint16_t)h), want = half(bytes);
        CHECKF(same(got, want), "%04x is %g, not %g", h, (double)got, (double)want);
        CHECKF(bits_of(got) >> 31 == h >> 15, "%04x lost its sign", h);
        unsigned back = bz_f32_to_f16(got);
        if (isnan(want))
            CHECKF((back & 0x7FFFu) > 0x7C00u && back >> 15 == h >> 15, "%04x to %04x", h, back);
        else
            CHECKF(back == h, "%04x came back as %04x", h, back);
    }

    begin("f16: nearest, ties to even");
    for (unsigned h = 0; h < 0x7BFF; h++) { /* between h and h + 1 */
        float low = bz_f16_to_f32((uint16_t)h), high = bz_f16_to_f32((uint16_t)(h + 1)),
              middle = (low + high) / 2;
        unsigned even = h & 1 ? h + 1 : h;
        for (unsigned sign = 0; sign < 2; sign++) {
            float m = sign ? -middle : middle;
            uint32_t b = bits_of(m);
            CHECKF(bz_f32_to_f16(m) == (even | sign << 15), "middle above %04x", h);
            CHECKF(bz_f32_to_f16(float_of(b - 1)) == (h | sign << 15),
                   "below the middle above %04x", h);
            CHECKF(bz_f32_to_f16(float_of(b + 1)) == ((h + 1) | sign << 15),
                   "above the middle above %04x", h);
        }
    }

    begin("f16: the ends of the range");
    CHECK(bz_f32_to_f16(65519.996f) == 0x7BFF);
    CHECK(bz_f32_to_f16(65520.0f) == 0x7C00);
    CHECK(bz_f32_to_f16(3e38f) == 0x7C00);
    CHECK(bz_f32_to_f16(-3e38f) == 0xFC00);
    CHECK(bz_f32_to_f16(INFINITY) == 0x7C00);
    CHECK(bz_f32_to_f16(0x1p-25f) == 0);
    CHECK(bz_f32_to_f16(0x1.000002p-25f) == 1);
    CHECK(bz_f32_to_f16(1e-45f) == 0);
    CHECK(bz_f32_to_f16(-0.0f) == 0x8000);
    CHECK((bz_f32_to_f16(float_of(0x7F800001u)) & 0x7E00) == 0x7E00);
    CHECK((bz_f32_to_f16(float_of(0xFFFFFFFFu)) & 0xFE00) == 0xFE00);

    begin("bf16: the upper half of an f32");
    CHECK(bz_bf16_to_f32(0x3F80) == 1.0f);
    CHECK(bz_bf16_to_f32(0xC040) == -3.0f);
    CHECK(bz_bf16_to_f32(0x0001) == 0x1p-133f);
    CHECK(isinf(bz_bf16_to_f32(0xFF80)));
}

static void test_random_blocks(void)
{
    for (size_t t = 0; t < N_RUNNING; t++) {
        bz_type type = running[t];
        const bz_type_info *info = bz_type_of((uint32_t)type);
        begin("%s: random blocks, unaligned", info->name);
        enum { BLOCKS = 40 };
        size_t bytes = BLOCKS * info->block_bytes, values = BLOCKS * info->block_values;
        uint8_t *raw = malloc(bytes + 1), *blocks = raw + 1;
        float *out = malloc((values + 1) * sizeof *out);
        for (int round = 0; round < 50; round++) {
            for (size_t i = 0; i < bytes; i++)
                blocks[i] = random_byte();
            out[values] = 12345.0f;
            bz_dequantize(type, blocks, out, values);
            for (size_t i = 0; i < values; i++) {
                float want = value_of(type, blocks + i / info->block_values * info->block_bytes,
                                      (int)(i % info->block_values));
                CHECKF(same(out[i], want), "value %zu is %.9g, not %.9g", i, (double)out[i],
                       (double)want);
            }
            CHECK(out[values] == 12345.0f);
        }
        free(out);
        free(raw);
    }
}

/* A few numbers worked out by hand, so that a mistake shared by the code and the
 * reference above cannot hide. 0x3800 is 0.5, 0x3400 0.25, 0xC000 -2, 0x3C00 1. */
static void test_by_hand(void)
{
    float x[256];

    begin("by hand: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0");
    uint8_t q4_0[18] = {0x00, 0x38, 0xF0};
    bz_dequantize(BZ_Q4_0, q4_0, x, 32);
    CHECK(x[0] == -4.0f && x[16] == 3.5f && x[1] == -4.0f);
    uint8_t q4_1[20] = {0x00, 0x38, 0x00, 0xC0, 0xF1};
    bz_dequantize(BZ_Q4_1, q4_1, x, 32);
    CHECK(x[0] == -1.5f && x[16] == 5.5f && x[31] == -2.0f);
    uint8_t q5_0[22] = {0x00, 0x38, 0x02, 0x00, 0x01, 0x00, 0x21, 0x0F};
    bz_dequantize(BZ_Q5_0, q5_0, x, 32);
    CHECK(x[0] == -7.5f && x[1] == 7.5f && x[16] == 1.0f && x[17] == -8.0f);
    uint8_t q5_1[24] = {0x00, 0x38, 0x00, 0x3C, 0x02, 0x00, 0x01, 0x00, 0x21, 0x0F};
    bz_dequantize(BZ_Q5_1, q5_1, x, 32);
    CHECK(x[0] == 1.5f && x[1] == 16.5f && x[16] == 10.0f && x[17] == 1.0f);
    uint8_t q8_0[34] = {0x00, 0x38, 0x80, 0x7F, 0xFF};
    bz_dequantize(BZ_Q8_0, q8_0, x, 32);
    CHECK(x[0] == -64.0f && x[1] == 63.5f && x[2] == -0.5f && x[3] == 0.0f);

    begin("by hand: IQ4_NL, MXFP4");
    uint8_t iq4_nl[18] = {0x00, 0x38, 0xF0};
    bz_dequantize(BZ_IQ4_NL, iq4_nl, x, 32);
    CHECK(x[0] == -63.5f && x[16] == 56.5f);
    uint8_t mxfp4[17] = {127, 0x71, 0x9F};
    bz_dequantize(BZ_MXFP4, mxfp4, x, 32);
    CHECK(x[0] == 0.5f && x[16] == 6.0f && x[1] == -6.0f && x[17] == -0.5f);

    begin("by hand: Q4_K, Q5_K");
    uint8_t q4_k[144] = {0x00, 0x38, 0x00, 0x34};
    q4_k[4] = 0x80 | 5;   /* scale 0 = 5; scale 4 gets 2 << 4 */
    q4_k[8] = 0x40 | 3;   /* minimum 0 = 3; minimum 4 gets 1 << 4 */
    q4_k[12] = 0x21;      /* scale 4 = 1 | 32 = 33, minimum 4 = 2 | 16 = 18 */
    q4_k[16] = 0xA7;      /* value 0 = 7, value 32 = 10 */
    q4_k[16 + 64] = 0x0C; /* value 128 = 12 */
    bz_dequantize(BZ_Q4_K, q4_k, x, 256);
    CHECK(x[0] == 2.5f * 7 - 0.75f && x[1] == -0.75f && x[32] == 0.0f &&
          x[128] == 16.5f * 12 - 4.5f);
    uint8_t q5_k[176] = {0x00, 0x38, 0x00, 0x34};
    memcpy(q5_k + 4, q4_k + 4, 12);
    q5_k[16] = 0x11; /* fifth bits of values 0 and 128 */
    q5_k[48] = 0xA7;
    q5_k[48 + 64] = 0x0C;
    bz_dequantize(BZ_Q5_K, q5_k, x, 256);
    CHECK(x[0] == 2.5f * 23 - 0.75f && x[128] == 16.5f * 28 - 4.5f && x[129] == -4.5f);

    begin("by hand: Q6_K, Q2_K, Q3_K, IQ4_XS");
    uint8_t q6_k[210] = {0x5A};
    q6_k[128] = 0x21;  /* value 0: 10 | 1<<4; value 64: 5 | 2<<4 */
    q6_k[192] = 0xFE;  /* scale of values 0..15: -2 */
    q6_k[192 + 4] = 3; /* of values 64..79 */
    q6_k[209] = 0x38;
    bz_dequantize(BZ_Q6_K, q6_k, x, 256);
    CHECK(x[0] == -1.0f * (26 - 32) && x[64] == 1.5f * (37 - 32) && x[1] == 32.0f);
    uint8_t q2_k[84] = {0x35};
    q2_k[16] = 0x03; /* value 0 = 3 */
    q2_k[81] = 0x38;
    q2_k[83] = 0x34;
    bz_dequantize(BZ_Q2_K, q2_k, x, 256);
    CHECK(x[0] == 2.5f * 3 - 0.75f && x[1] == -0.75f && x[16] == 0.0f);
    uint8_t q3_k[110] = {0x01}; /* value 0 has its third bit */
    q3_k[32] = 0x02;
    q3_k[96] = 0x07; /* scale 0 = 7 | 3<<4 = 55, minus 32 */
    q3_k[104] = 0x03;
    q3_k[109] = 0x38;
    bz_dequantize(BZ_Q3_K, q3_k, x, 256);
    CHECK(x[0] == 11.5f * 2 && x[1] == 11.5f * -4 && x[128] == 64.0f);
    uint8_t iq4_xs[136] = {0x00, 0x38, 0x0C, 0x00, 0x90};
    bz_dequantize(BZ_IQ4_XS, iq4_xs, x, 256); /* scale 0 = 0 - 32; scale 1 = 9 | 3<<4 = 57 - 32 */
    CHECK(x[0] == -16.0f * -127 && x[32] == 12.5f * -127);
}

static void test_edges(void)
{
    begin("MXFP4: every scale is the power of two");
    for (int e = 0; e < 256; e++) {
        uint8_t block[17] = {(uint8_t)e};
        float x[32];
        for (int j = 0; j < 16; j++)
            block[1 + j] = (uint8_t)(j | (15 - j) << 4);
        bz_dequantize(BZ_MXFP4, block, x, 32);
        for (int i = 0; i < 32; i++)
            CHECKF(x[i] == value_mxfp4(block, i), "e %d value %d is %g", e, i, (double)x[i]);
    }

    begin("hostile scales: infinite, NaN, subnormal, huge");
    static const uint16_t bad[] = {0x7C00, 0xFC00, 0x7E00, 0x7C01, 0xFFFF,
                                   0x0001, 0x8001, 0x7BFF, 0xFBFF, 0x8000};
    for (size_t t = 0; t < N_RUNNING; t++) {
        const bz_type_info *info = bz_type_of((uint32_t)running[t]);
        int at[2];
        half_fields(running[t], at);
        for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
            uint8_t block[292];
            float x[256];
            for (size_t i = 0; i < info->block_bytes; i++)
                block[i] = random_byte();
            for (int f = 0; f < 2; f++)
                if (at[f] >= 0)
                    block[at[f]] = (uint8_t)bad[k], block[at[f] + 1] = (uint8_t)(bad[k] >> 8);
            bz_dequantize(running[t], block, x, info->block_values);
            for (uint32_t i = 0; i < info->block_values; i++)
                CHECKF(same(x[i], value_of(running[t], block, (int)i)), "%s scale %04x value %u",
                       info->name, bad[k], i);
        }
    }
}

int main(void)
{
    test_types();
    test_f16();
    test_random_blocks();
    test_by_hand();
    test_edges();
    return finish();
}
