/* Integer products with 256 bits (products.h), 8 lanes: the text of products_avx2.c, and of
 * products_avxvnni.c, which defines VNNI. Both give the same bits. TABLE is the table's name.
 *
 * AVX2: vpmaddubsw multiplies unsigned by signed bytes and adds two products, saturating at 16
 * bits. Weights of up to six bits are unsigned here (q + offset; offset times the sum of the
 * activations is subtracted in integers), so that several such sums fit 16 bits before they are
 * widened. For weights of eight bits the sign moves to the activations, and every sum is widened at
 * once.
 *
 * VNNI: vpdpbusd adds four products to each 32-bit lane. Weights of eight bits are unsigned too (q
 * + 128), except in packed panels, where all weights are signed and activations are (x + 128). */
#include <immintrin.h>
#include <string.h>

#include "cpu/products.h"
#include "file/blocks.h"

#define INLINE static inline __attribute__((always_inline))

#ifndef VNNI
#define VNNI 0
#endif

enum { L = 8, MAX_SHARED = VNNI ? 4 : 2 /* rows of activations that share a step */ };

/* ---- how the weights of a type are multiplied ---- */

typedef struct weights_of {
    size_t G;     /* values of a group */
    bool has_min; /* of the file; offsets are no minima */
    int offset;   /* added to unpacked values */
    size_t add;   /* sums of pairs that fit 16 bits together; 0: signed weights */
} weights_of;

/* pairs: 32767 / (254 * largest unsigned value), a divisor of 8 */
#define W_NIBBLE                                                                                   \
    {                                                                                              \
        32, true, 0, 8                                                                             \
    } /* Q4_1, Q4_K */
#define W_FIVE                                                                                     \
    {                                                                                              \
        32, true, 0, 4                                                                             \
    } /* Q5_1, Q5_K */
#define W_Q2_K                                                                                     \
    {                                                                                              \
        16, true, 0, 4                                                                             \
    }
#define W_Q3_K                                                                                     \
    {                                                                                              \
        16, false, 4, 4                                                                            \
    }
#define W_Q6_K                                                                                     \
    {                                                                                              \
        16, false, 32, 2                                                                           \
    }
#define W_Q4_0                                                                                     \
    {                                                                                              \
        32, false, 8, 8                                                                            \
    }
#define W_Q5_0                                                                                     \
    {                                                                                              \
        32, false, 16, 4                                                                           \
    }
#define W_MXFP4                                                                                    \
    {                                                                                              \
        32, false, 12, 4                                                                           \
    }
#define W_SIGNED                                                                                   \
    {                                                                                              \
        32, false, 0, 0                                                                            \
    } /* Q8_0, IQ4_NL, IQ4_XS */

/* ---- reductions ---- */

INLINE __m256i widen(__m256i pairs)
{
    return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

/* The sums of the two 128-bit parts of v0 .. v3: lane 4i + j is part i of vj. */
INLINE __m256i fold(__m256i v0, __m256i v1, __m256i v2, __m256i v3)
{
    __m256i a = _mm256_add_epi32(_mm256_unpacklo_epi32(v0, v1), _mm256_unpackhi_epi32(v0, v1));
    __m256i b = _mm256_add_epi32(_mm256_unpacklo_epi32(v2, v3), _mm256_unpackhi_epi32(v2, v3));
    return _mm256_add_epi32(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
}

INLINE __m256i fold_pairs(__m256i v0, __m256i v1)
{
    return widen(_mm256_packs_epi32(v0, v1));
}

/* fold, if the lanes fit 16 bits. */
INLINE __m256i fold_half(const __m256i v[4])
{
    __m256 a = _mm256_castsi256_ps(fold_pairs(v[0], v[1])),
           b = _mm256_castsi256_ps(fold_pairs(v[2], v[3]));
    return _mm256_add_epi32(_mm256_castps_si256(_mm256_shuffle_ps(a, b, 0x88)),
                            _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0xDD)));
}

/* fold, if sums of two lanes fit 16 bits. */
INLINE __m256i fold_short(const __m256i v[4])
{
    return fold_pairs(fold_pairs(v[0], v[1]), fold_pairs(v[2], v[3]));
}

/* Rows of 8 dwords to columns. */
INLINE void transpose(__m256i v[8])
{
    __m256i t[8];
    for (int i = 0; i < 8; i += 4) {
        __m256i a = _mm256_unpacklo_epi32(v[i], v[i + 1]),
                b = _mm256_unpackhi_epi32(v[i], v[i + 1]),
                c = _mm256_unpacklo_epi32(v[i + 2], v[i + 3]),
                d = _mm256_unpackhi_epi32(v[i + 2], v[i + 3]);
        t[i] = _mm256_unpacklo_epi64(a, c);
        t[i + 1] = _mm256_unpackhi_epi64(a, c);
        t[i + 2] = _mm256_unpacklo_epi64(b, d);
        t[i + 3] = _mm256_unpackhi_epi64(b, d);
    }
    for (int i = 0; i < 4; i++) {
        v[i] = _mm256_permute2x128_si256(t[i], t[i + 4], 0x20);
        v[i + 4] = _mm256_permute2x128_si256(t[i], t[i + 4], 0x31);
    }
}

/* ---- sums of products, parts of blocks ---- */

INLINE __m256i minus(__m256i p, __m256i total, const int offset)
{
    return _mm256_sub_epi32(p, _mm256_mullo_epi32(total, _mm256_set1_epi32(offset)));
}

#if VNNI

/* sum + 4 products of unsigned weights. */
INLINE __m256i add_dot4(__m256i sum, __m256i w, __m256i x)
{
    return _mm256_dpbusd_avx_epi32(sum, w, x);
}

INLINE __m256i dot4(__m256i w, __m256i x)
{
    return add_dot4(_mm256_setzero_si256(), w, x);
}

INLINE __m256i dot8(__m256i w0, __m256i x0, __m256i w1, __m256i x1)
{
    return add_dot4(dot4(w0, x0), w1, x1);
}

#else

/* Sums of 4 products of unsigned weights; 2 products fit 16 bits. */
INLINE __m256i dot4(__m256i w, __m256i x)
{
    return widen(_mm256_maddubs_epi16(w, x));
}

/* The same of two vectors, of which 4 products fit 16 bits. */
INLINE __m256i dot8(__m256i w0, __m256i x0, __m256i w1, __m256i x1)
{
    return widen(_mm256_add_epi16(_mm256_maddubs_epi16(w0, x0), _mm256_maddubs_epi16(w1, x1)));
}

#endif

/* Weights of eight bits: lifted once, multiplied, and the sums of a group lowered. */
INLINE __m256i lifted(__m256i w)
{
    return VNNI ? _mm256_xor_si256(w, _mm256_set1_epi8((char)0x80)) : w;
}

INLINE __m256i dot_signed(__m256i w, __m256i x)
{
    return dot4(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
}

INLINE __m256i dot8_lifted(__m256i w0, __m256i x0, __m256i w1, __m256i x1)
{
    return VNNI ? dot8(w0, x0, w1, x1) : _mm256_add_epi32(dot_signed(w0, x0), dot_signed(w1, x1));
}

INLINE __m256i lowered(__m256i p, __m256i total)
{
    return VNNI ? _mm256_sub_epi32(p, _mm256_slli_epi32(total, 7)) : p;
}

INLINE __m256i low_bits(__m256i v, const int mask)
{
    return _mm256_and_si256(v, _mm256_set1_epi8((char)mask));
}

INLINE __m256i high_nibbles(__m256i v)
{
    return low_bits(_mm256_srli_epi16(v, 4), 15);
}

INLINE __m256i load32(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

INLINE __m256i firsts(__m256i a, __m256i b)
{
    return _mm256_permute2x128_si256(a, b, 0x20);
}

INLINE __m256i seconds(__m256i a, __m256i b)
{
    return _mm256_permute2x128_si256(a, b, 0x31);
}

INLINE __m128i bytes8(uint32_t low, uint32_t high)
{
    return _mm_cvtsi64_si128((long long)((uint64_t)high << 32 | low));
}

INLINE float half_at(const uint8_t *p)
{
    return _cvtsh_ss(bz_le16(p));
}

/* d * unsigned bytes. */
INLINE __m256 scaled(float d, __m128i bytes)
{
    return _mm256_mul_ps(_mm256_set1_ps(d), _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)));
}

INLINE __m256 scaled_signed(float d, __m128i bytes)
{
    return _mm256_mul_ps(_mm256_set1_ps(d), _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)));
}

#include "cpu/products_256_few.h"
#include "cpu/products_256_many.h"

const bz_products TABLE = {.lanes = L,
                           .rows = rows,
                           .row_bytes = arranged_bytes,
                           .arrange_row = arrange_row,
                           .pack = pack,
                           .panel_bytes = panel_bytes,
                           .block_rows = BZ_BLOCK_ROWS,
                           .block_bytes = bz_product_block_bytes,
                           .arrange_in_block = arrange_in_block,
                           .multiply = multiply};
