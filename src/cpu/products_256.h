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

/* ---- one activation row ---- */

/* The row x in the order of a type: for 8 groups 8 * G bytes in parts of 16, then by lane. */
typedef struct row_order {
    uint8_t part[16]; /* 16 bytes of the 8 groups, by position */
    uint8_t group[8]; /* by lane */
} row_order;

static const row_order order16 = {{0, 1, 2, 3, 4, 5, 6, 7}, {0, 2, 4, 6, 1, 3, 5, 7}};
static const row_order order32 = {{0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15},
                                  {0, 2, 4, 6, 1, 3, 5, 7}};
/* Q4_K and Q5_K, whose low and high nibbles are neighboring groups. */
static const row_order order_k = {{0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15},
                                  {0, 1, 4, 5, 2, 3, 6, 7}};

typedef struct few_row {
    const row_order *order;
    size_t rounds; /* of 8 groups */
    __m256i *q;    /* [rounds][G / 4] */
    __m256 *d, *sum;
    __m256i *total; /* [rounds] */
    uint8_t *rest;  /* memory after it */
} few_row;

static size_t arranged_bytes(size_t k)
{
    const size_t whole = (k + 255) / 256 * 256;
    return whole + 3 * whole / 4 + whole + whole / 2;
}

INLINE few_row few_row_at(const size_t G, size_t k, const row_order *order, void *memory)
{
    const size_t rounds = (k + 8 * G - 1) / (8 * G);
    few_row row = {.order = order, .rounds = rounds, .q = memory};
    row.total = row.q + rounds * G / 4;
    row.d = (__m256 *)(void *)(row.total + rounds);
    row.sum = row.d + rounds;
    row.rest = (uint8_t *)(row.sum + rounds);
    return row;
}

INLINE void arrange(const few_row *row, const bz_q8 *x, const size_t G, size_t k)
{
    const row_order *order = row->order;
    __m256i *q = row->q;
    for (size_t t = 0; t < row->rounds; t++) {
        float scales[8];
        for (size_t i = 0; i < G / 2; i++) {
            const size_t at = 16 * (t * G / 2 + order->part[i]);
            _mm_store_si128((__m128i *)(void *)(q + t * G / 4) + i,
                            at < k ? _mm_loadu_si128((const __m128i *)(x->q + at))
                                   : _mm_setzero_si128());
        }
        for (size_t l = 0; l < 8; l++) {
            const size_t at = (8 * t + order->group[l]) * G;
            scales[l] = at < k ? x->d[at / 32] : 0;
        }
        const __m256i one = _mm256_set1_epi8(1), *v = q + t * G / 4;
        __m256i part[4];
        for (size_t j = 0; j < 4; j++)
            part[j] = widen(G == 16 ? _mm256_maddubs_epi16(one, v[j])
                                    : _mm256_add_epi16(_mm256_maddubs_epi16(one, v[2 * j]),
                                                       _mm256_maddubs_epi16(one, v[2 * j + 1])));
        row->total[t] = fold(part[0], part[1], part[2], part[3]);
        row->d[t] = _mm256_loadu_ps(scales);
        row->sum[t] = _mm256_mul_ps(row->d[t], _mm256_cvtepi32_ps(row->total[t]));
    }
}

static void arrange_row(bz_type type, const bz_q8 *x, size_t k, void *memory)
{
    if (bz_product_group(type) == 16) {
        const few_row row = few_row_at(16, k, &order16, memory);
        arrange(&row, x, 16, k);
    } else {
        const bool pairs = type == BZ_Q4_K || type == BZ_Q5_K;
        const few_row row = few_row_at(32, k, pairs ? &order_k : &order32, memory);
        arrange(&row, x, 32, k);
    }
}

/* a + 8 groups: exact products p, scales s. */
INLINE __m256 add(__m256 a, __m256i p, __m256 s, const few_row *x, size_t t)
{
    return _mm256_fmadd_ps(_mm256_cvtepi32_ps(p), _mm256_mul_ps(s, x->d[t]), a);
}

INLINE __m256 subtract(__m256 a, __m256 m, const few_row *x, size_t t)
{
    return _mm256_fnmadd_ps(m, x->sum[t], a);
}

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

/* The products p of a block of Q4_K or Q5_K. As bz_q4_k_scales: eight scales are 6 bits of bytes
 * 0 .. 3, then the low nibbles of bytes 8 .. 11 under two bits of bytes 0 .. 3; minima likewise
 * from bytes 4 .. 7 and the high nibbles. Reads 16 bytes from the scales on. */
INLINE __m256 add_k(__m256 a, __m256i p, const uint8_t *d, const uint8_t *dmin,
                    const uint8_t *bytes, const few_row *x, size_t t)
{
    const __m128i low = _mm_setr_epi8(0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 8, 9, 10, 11),
                  top = _mm_setr_epi8(-1, -1, -1, -1, 0, 1, 2, 3, -1, -1, -1, -1, 4, 5, 6, 7),
                  order = _mm_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15);
    const __m128i v = _mm_loadu_si128((const __m128i *)bytes);
    __m128i six =
        _mm_and_si128(_mm_srlv_epi32(_mm_shuffle_epi8(v, low), _mm_setr_epi32(0, 0, 0, 4)),
                      _mm_set1_epi64x(0x0F0F0F0F3F3F3F3F));
    six = _mm_or_si128(
        six, _mm_and_si128(_mm_srli_epi32(_mm_shuffle_epi8(v, top), 2), _mm_set1_epi8(0x30)));
    six = _mm_shuffle_epi8(six, order);
    a = add(a, p, scaled(half_at(d), six), x, t);
    return subtract(a, scaled(half_at(dmin), _mm_srli_si128(six, 8)), x, t);
}

/* Steps: a + the groups of round t (Q6_K: of rounds 2t and 2t + 1), whose bytes are at `at`. */
INLINE __m256 step_q4_k(__m256 a, const uint8_t *at, const few_row *x, size_t t)
{
    const bz_block_q4_k *b = (const void *)at;
    const __m256i *q = x->q + 8 * t;
    __m256i v[4];
    for (int c = 0; c < 2; c++, q += 4) {
        const __m256i w0 = load32(b->q + 64 * c), w1 = load32(b->q + 64 * c + 32),
                      first = firsts(w0, w1), second = seconds(w0, w1);
        v[2 * c] = dot8(low_bits(first, 15), q[0], low_bits(second, 15), q[1]);
        v[2 * c + 1] = dot8(high_nibbles(first), q[2], high_nibbles(second), q[3]);
    }
    return add_k(a, fold_short(v), b->d, b->dmin, b->scales, x, t);
}

/* 16 in every byte of the two parts whose bit `first` (`first` + 2 in the second part) is set. */
INLINE __m256i fifth(__m256i high, const int first)
{
    const __m256i bit = _mm256_setr_epi64x(
        (long long)(0x0101010101010101ull << first), (long long)(0x0101010101010101ull << first),
        (long long)(0x0404040404040404ull << first), (long long)(0x0404040404040404ull << first));
    return low_bits(_mm256_cmpeq_epi8(_mm256_and_si256(high, bit), bit), 16);
}

INLINE __m256 step_q5_k(__m256 a, const uint8_t *at, const few_row *x, size_t t)
{
    const bz_block_q5_k *b = (const void *)at;
    const __m256i *q = x->q + 8 * t;
    const __m256i h0 = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)b->high)),
                  h1 =
                      _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(b->high + 16)));
    __m256i v[4];
#define HALF(c)                                                                                    \
    do {                                                                                           \
        const __m256i w0 = load32(b->q + 64 * (c)), w1 = load32(b->q + 64 * (c) + 32),             \
                      first = firsts(w0, w1), second = seconds(w0, w1);                            \
        v[2 * (c)] =                                                                               \
            dot8(_mm256_or_si256(low_bits(first, 15), fifth(h0, 4 * (c))), q[4 * (c)],             \
                 _mm256_or_si256(low_bits(second, 15), fifth(h1, 4 * (c))), q[4 * (c) + 1]);       \
        v[2 * (c) + 1] =                                                                           \
            dot8(_mm256_or_si256(high_nibbles(first), fifth(h0, 4 * (c) + 1)), q[4 * (c) + 2],     \
                 _mm256_or_si256(high_nibbles(second), fifth(h1, 4 * (c) + 1)), q[4 * (c) + 3]);   \
    } while (0)
    HALF(0);
    HALF(1);
#undef HALF
    return add_k(a, fold_half(v), b->d, b->dmin, b->scales, x, t);
}

INLINE __m256 step_q6_k(__m256 a, const uint8_t *at, const few_row *x, size_t t)
{
    const bz_block_q6_k *b = (const void *)at;
    const __m128i scales = _mm_loadu_si128((const __m128i *)b->scales);
    const __m128i order = _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, -1, -1, -1, -1, -1, -1, -1, -1);
    for (size_t n = 0; n < 2; n++) {
        const __m256i *q = x->q + 4 * (2 * t + n);
        const __m256i low = load32(b->low + 64 * n), more = load32(b->low + 64 * n + 32),
                      high = load32(b->high + 32 * n);
        const __m256i w[4] = {
            _mm256_or_si256(low_bits(low, 15), low_bits(_mm256_slli_epi16(high, 4), 0x30)),
            _mm256_or_si256(low_bits(more, 15), low_bits(_mm256_slli_epi16(high, 2), 0x30)),
            _mm256_or_si256(high_nibbles(low), low_bits(high, 0x30)),
            _mm256_or_si256(high_nibbles(more), low_bits(_mm256_srli_epi16(high, 2), 0x30))};
        __m256i v[4];
        for (int j = 0; j < 4; j++)
            v[j] = dot4(w[j], q[j]);
        const __m256i p = _mm256_sub_epi32(fold_half(v), _mm256_slli_epi32(x->total[2 * t + n], 5));
        const __m128i eight = n ? _mm_srli_si128(scales, 8) : scales;
        a = add(a, p, scaled_signed(half_at(b->d), _mm_shuffle_epi8(eight, order)), x, 2 * t + n);
    }
    return a;
}

/* The f16 numbers at the start of 8 blocks, by lane. */
INLINE __m256 block_scales(const uint8_t *at, const size_t size)
{
#define AT(g) (short)bz_le16(at + (g)*size)
    return _mm256_cvtph_ps(_mm_setr_epi16(AT(0), AT(2), AT(4), AT(6), AT(1), AT(3), AT(5), AT(7)));
#undef AT
}

INLINE __m256 step_q8_0(__m256 a, const uint8_t *at, const few_row *x, size_t t)
{
    enum { SIZE = sizeof(bz_block_q8_0) };
    const __m256i *q = x->q + 8 * t;
    __m256i v[4];
    for (int j = 0; j < 4; j++) {
        const __m256i w0 = lifted(load32(at + 2 * j * SIZE + 2)),
                      w1 = lifted(load32(at + (2 * j + 1) * SIZE + 2));
        v[j] = dot8_lifted(firsts(w0, w1), q[2 * j], seconds(w0, w1), q[2 * j + 1]);
    }
    return add(a, lowered(fold(v[0], v[1], v[2], v[3]), x->total[t]), block_scales(at, SIZE), x, t);
}

/* The 16 bytes at `at` of each of two blocks. */
INLINE __m256i two_blocks(const uint8_t *at, const size_t size)
{
    return _mm256_set_m128i(_mm_loadu_si128((const __m128i *)(at + size)),
                            _mm_loadu_si128((const __m128i *)at));
}

INLINE __m256 step_q4_0(__m256 a, const uint8_t *at, const few_row *x, size_t t)
{
    enum { SIZE = sizeof(bz_block_q4_0) };
    const __m256i *q = x->q + 8 * t;
    __m256i v[4];
    for (int j = 0; j < 4; j++) {
        const __m256i w = two_blocks(at + 2 * j * SIZE + 2, SIZE);
        v[j] = dot8(low_bits(w, 15), q[2 * j], high_nibbles(w), q[2 * j + 1]);
    }
    return add(a, _mm256_sub_epi32(fold_short(v), _mm256_slli_epi32(x->total[t], 3)),
               block_scales(at, SIZE), x, t);
}

INLINE __m256i look_up(__m128i table, __m256i nibbles)
{
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), nibbles);
}

INLINE __m256i dot_iq4(__m256i w, const __m256i *q)
{
    const __m256i table = lifted(_mm256_broadcastsi128_si256(_mm_setr_epi8(BZ_IQ4_VALUES)));
    return dot8_lifted(_mm256_shuffle_epi8(table, low_bits(w, 15)), q[0],
                       _mm256_shuffle_epi8(table, high_nibbles(w)), q[1]);
}

INLINE __m256 step_iq4_nl(__m256 a, const uint8_t *at, const few_row *x, size_t t)
{
    enum { SIZE = sizeof(bz_block_q4_0) };
    __m256i v[4];
    for (int j = 0; j < 4; j++)
        v[j] = dot_iq4(two_blocks(at + 2 * j * SIZE + 2, SIZE), x->q + 8 * t + 2 * j);
    return add(a, lowered(fold(v[0], v[1], v[2], v[3]), x->total[t]), block_scales(at, SIZE), x, t);
}

INLINE __m256 step_iq4_xs(__m256 a, const uint8_t *at, const few_row *x, size_t t)
{
    const bz_block_iq4_xs *b = (const void *)at;
    const __m128i order = _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, -1, -1, -1, -1, -1, -1, -1, -1);
    __m256i v[4];
    for (int j = 0; j < 4; j++)
        v[j] = dot_iq4(load32(b->q + 32 * j), x->q + 8 * t + 2 * j);
    uint32_t s[2];
    bz_iq4_xs_scales(b, s);
    const __m128i scales =
        _mm_shuffle_epi8(_mm_sub_epi8(bytes8(s[0], s[1]), _mm_set1_epi8(32)), order);
    return add(a, lowered(fold(v[0], v[1], v[2], v[3]), x->total[t]),
               scaled_signed(half_at(b->d), scales), x, t);
}

INLINE __m256 step_mxfp4(__m256 a, const uint8_t *at, const few_row *x, size_t t)
{
    enum { SIZE = sizeof(bz_block_mxfp4), OFFSET = 12 };
    const __m128i table = _mm_add_epi8(_mm_setr_epi8(BZ_MXFP4_VALUES), _mm_set1_epi8(OFFSET));
    const __m256i *q = x->q + 8 * t;
    __m256i v[4];
    for (int j = 0; j < 4; j++) {
        const __m256i w = two_blocks(at + 2 * j * SIZE + 1, SIZE);
        v[j] = dot8(look_up(table, low_bits(w, 15)), q[2 * j], look_up(table, high_nibbles(w)),
                    q[2 * j + 1]);
    }
#define AT(g) (int)bz_mxfp4_scale_bits(at[(g)*SIZE])
    const __m256i bits = _mm256_setr_epi32(AT(0), AT(2), AT(4), AT(6), AT(1), AT(3), AT(5), AT(7));
#undef AT
    return add(a, minus(fold_half(v), x->total[t], OFFSET), _mm256_castsi256_ps(bits), x, t);
}

/* Values of every second lane of 16. */
INLINE __m256 evens(const float *p)
{
    const __m256 v = _mm256_shuffle_ps(_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8), 0x88);
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(v), 0xD8));
}

/* Scales or minima per 16 values of 8 groups, by lane. */
INLINE __m256 by_lane(const float *p, const size_t G)
{
    const __m256i order = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
    return _mm256_permutevar8x32_ps(G == 16 ? _mm256_loadu_ps(p) : evens(p), order);
}

/* Unpacked weights. */
INLINE __m256 step_unpacked(__m256 a, bz_w8 w, const weights_of type, const few_row *x, size_t t)
{
    const size_t G = type.G;
    const __m256i offset = _mm256_set1_epi8((char)type.offset), *q = x->q + t * G / 4;
    __m256i v[4];
    for (size_t j = 0; j < 4; j++) {
        if (G == 16) { /* at most four bits */
            v[j] = dot4(_mm256_add_epi8(load32(w.q + 32 * j), offset), q[j]);
            continue;
        }
        const __m256i w0 = _mm256_add_epi8(load32(w.q + 64 * j), offset),
                      w1 = _mm256_add_epi8(load32(w.q + 64 * j + 32), offset);
        v[j] = dot8(firsts(w0, w1), q[2 * j], seconds(w0, w1), q[2 * j + 1]);
    }
    __m256i p = fold(v[0], v[1], v[2], v[3]);
    p = type.offset ? minus(p, x->total[t], type.offset) : p;
    a = add(a, p, by_lane(w.s, G), x, t);
    return type.has_min ? subtract(a, by_lane(w.m, G), x, t) : a;
}

/* out[i] = sum of the lanes of row i in the order of their groups. */
static void add_lanes(__m256i lanes[8], const row_order *order, size_t count, float *out)
{
    __m256i by_group[8];
    float sums[8];
    transpose(lanes);
    for (size_t l = 0; l < 8; l++)
        by_group[order->group[l]] = lanes[l];
    __m256 sum = _mm256_castsi256_ps(by_group[0]);
    for (size_t g = 1; g < 8; g++)
        sum = _mm256_add_ps(sum, _mm256_castsi256_ps(by_group[g]));
    _mm256_storeu_ps(sums, sum);
    memcpy(out, sums, count * sizeof *out);
}

/* Weights are read once and in order, but the processor's own prefetching ends at each page. The
 * address may be beyond the last block: prefetching never faults. */
INLINE void fetch_ahead(const uint8_t *at, const size_t bytes)
{
    enum { AHEAD = 8192 };
    for (size_t i = 0; i < bytes; i += 64)
        _mm_prefetch((const char *)((uintptr_t)at + AHEAD + i), _MM_HINT_T0);
}

typedef __m256 (*step_function)(__m256 a, const uint8_t *at, const few_row *x, size_t t);

/* a[r] of one weight row for R rows of activations. A step's unpacked weights serve all of them,
 * as nothing is stored in between. bytes: of the 256 values that a step takes. */
INLINE void add_row(const size_t R, const step_function step, const size_t bytes,
                    const uint8_t *blocks, size_t row_bytes, const few_row *x, size_t k,
                    __m256 a[MAX_SHARED])
{
    for (size_t r = 0; r < R; r++)
        a[r] = _mm256_setzero_ps();
    size_t t = 0;
    for (; t < k / 256; t++) {
        fetch_ahead(blocks + t * bytes, bytes);
        for (size_t r = 0; r < R; r++)
            a[r] = step(a[r], blocks + t * bytes, &x[r], t);
    }
    if (t * 256 < k) {
        uint8_t rest[8 * 34] = {0};
        memcpy(rest, blocks + t * bytes, row_bytes - t * bytes);
        for (size_t r = 0; r < R; r++)
            a[r] = step(a[r], rest, &x[r], t);
    }
}

/* out[r * stride + i] of n <= 8 weight rows. */
INLINE void rows8(const size_t R, const step_function step, const size_t bytes,
                  const uint8_t *blocks, size_t row_bytes, size_t n, const few_row *x, size_t k,
                  float *out, size_t stride)
{
    __m256i lanes[MAX_SHARED][8];
    for (size_t i = 0; i < n; i++) {
        __m256 a[MAX_SHARED];
        add_row(R, step, bytes, blocks + i * row_bytes, row_bytes, x, k, a);
        for (size_t r = 0; r < R; r++)
            lanes[r][i] = _mm256_castps_si256(a[r]);
    }
    for (size_t r = 0; r < R; r++) {
        for (size_t i = n; i < 8; i++)
            lanes[r][i] = _mm256_setzero_si256();
        add_lanes(lanes[r], x->order, n, out + r * stride);
    }
}

INLINE void rows_of(const step_function step, const size_t G, const row_order *order,
                    const size_t bytes, const uint8_t *blocks, size_t row_bytes, size_t count,
                    uint8_t *memory, size_t rows, size_t k, float *out, size_t stride)
{
    few_row x[BZ_FEW_ROWS];
    for (size_t r = 0; r < rows; r++)
        x[r] = few_row_at(G, k, order, memory + r * arranged_bytes(k));
    for (size_t c = 0; c < count; c += 8) {
        const uint8_t *at = blocks + c * row_bytes;
        const size_t n = count - c < 8 ? count - c : 8;
        size_t r = 0;
        for (; r + MAX_SHARED <= rows; r += MAX_SHARED)
            rows8(MAX_SHARED, step, bytes, at, row_bytes, n, x + r, k, out + r * stride + c,
                  stride);
        for (; r + 2 <= rows; r += 2)
            rows8(2, step, bytes, at, row_bytes, n, x + r, k, out + r * stride + c, stride);
        if (r < rows)
            rows8(1, step, bytes, at, row_bytes, n, x + r, k, out + r * stride + c, stride);
    }
}

/* Types without a step of their own: each weight row is unpacked first. */
INLINE void rows_unpacked(bz_type type, const weights_of how, const uint8_t *blocks, size_t count,
                          uint8_t *memory, size_t rows, size_t k, float *out, size_t stride)
{
    const row_order *order = how.G == 16 ? &order16 : &order32;
    const size_t row_bytes = bz_row_bytes(type, k);
    few_row x[BZ_FEW_ROWS];
    for (size_t r = 0; r < rows; r++)
        x[r] = few_row_at(how.G, k, order, memory + r * arranged_bytes(k));
    const size_t padded = x->rounds * 8 * how.G;
    bz_w8 w = {.q = (int8_t *)x->rest};
    w.s = (float *)(void *)(x->rest + padded);
    w.m = w.s + padded / 16;
    memset(w.q, 0, padded + padded / 2);
    for (size_t c = 0; c < count; c += 8) {
        const size_t n = count - c < 8 ? count - c : 8;
        __m256i lanes[BZ_FEW_ROWS][8];
        for (size_t i = 0; i < n; i++) {
            bz_kernels_avx2.unpack(type, blocks + (c + i) * row_bytes, w, k);
            for (size_t r = 0; r < rows; r++) {
                __m256 a = _mm256_setzero_ps();
                for (size_t t = 0; t < x->rounds; t++)
                    a = step_unpacked(a, bz_w8_at(w, 8 * how.G * t), how, &x[r], t);
                lanes[r][i] = _mm256_castps_si256(a);
            }
        }
        for (size_t r = 0; r < rows; r++) {
            for (size_t i = n; i < 8; i++)
                lanes[r][i] = _mm256_setzero_si256();
            add_lanes(lanes[r], order, n, out + r * stride + c);
        }
    }
}

static void rows(bz_type type, const uint8_t *blocks, size_t count, void *memory, size_t n,
                 size_t k, float *out, size_t stride)
{
#define BY(name, G, order, values, block)                                                          \
    rows_of(step_##name, G, order, sizeof(block) * 256 / (values), blocks, bz_row_bytes(type, k),  \
            count, memory, n, k, out, stride);                                                     \
    return
#define UNPACKED(...)                                                                              \
    rows_unpacked(type, (weights_of)__VA_ARGS__, blocks, count, memory, n, k, out, stride);        \
    return
    switch (type) {
    case BZ_Q4_K: BY(q4_k, 32, &order_k, 256, bz_block_q4_k);
    case BZ_Q5_K: BY(q5_k, 32, &order_k, 256, bz_block_q5_k);
    case BZ_Q6_K: BY(q6_k, 16, &order16, 256, bz_block_q6_k);
    case BZ_Q8_0: BY(q8_0, 32, &order32, 32, bz_block_q8_0);
    case BZ_Q4_0: BY(q4_0, 32, &order32, 32, bz_block_q4_0);
    case BZ_IQ4_NL: BY(iq4_nl, 32, &order32, 32, bz_block_q4_0);
    case BZ_IQ4_XS: BY(iq4_xs, 32, &order32, 256, bz_block_iq4_xs);
    case BZ_MXFP4: BY(mxfp4, 32, &order32, 32, bz_block_mxfp4);
    case BZ_Q2_K: UNPACKED(W_Q2_K);
    case BZ_Q3_K: UNPACKED(W_Q3_K);
    case BZ_Q5_0: UNPACKED(W_Q5_0);
    case BZ_Q5_1: UNPACKED(W_FIVE);
    default: UNPACKED(W_NIBBLE); /* Q4_1 */
    }
#undef UNPACKED
#undef BY
}

/* ---- many activation rows ---- */

INLINE void arrange_plus(const int change, const bz_q8 *x, size_t k, size_t slot, void *block)
{
    enum { B = BZ_BLOCK_ROWS };
    const bz_product_block b = bz_product_block_at(block, k);
    const __m256i plus = _mm256_set1_epi8((char)change), one = _mm256_set1_epi8(1);
    for (size_t g = 0; g < k / 32; g++) {
        const __m256i v = load32(x->q + 32 * g);
        uint32_t fours[8];
        int32_t sums[8];
        _mm256_storeu_si256((__m256i *)(void *)fours, _mm256_add_epi8(v, plus));
        _mm256_storeu_si256((__m256i *)(void *)sums,
                            _mm256_madd_epi16(_mm256_maddubs_epi16(one, v), _mm256_set1_epi16(1)));
        for (size_t i = 0; i < 8; i++)
            memcpy(b.q + (32 * g + 4 * i) * B + 4 * slot, &fours[i], sizeof fours[i]);
        bz_product_block_group(&b, x, g, slot, sums[0] + sums[1] + sums[2] + sums[3],
                               sums[4] + sums[5] + sums[6] + sums[7]);
    }
}

static void arrange_in_block(const bz_q8 *x, size_t k, size_t slot, void *block)
{
    arrange_plus(VNNI ? 128 : 0, x, k, slot, block);
}

#if !VNNI
void bz_product_arrange_plus_128(const bz_q8 *x, size_t k, size_t slot, void *block)
{
    arrange_plus(128, x, k, slot, block);
}
#endif

/* A panel has 8 weight rows. For each group, in the order of the sums: vectors of scales, minima
 * and, with VNNI, corrections (-128 * sum of the weights, since activations are x + 128), then G /
 * 4 vectors of four values of each row. Panels are packed in pairs, group by group. */
enum { VALUES = VNNI ? 3 : 2 /* vectors before the values */ };

INLINE size_t group_vectors(const size_t G)
{
    return VALUES + G / 4;
}

static size_t panel_bytes(size_t k)
{
    return k / 16 * 4 * group_vectors(16) * 32; /* the most: groups of 16 */
}

/* Where group g is: a_j's groups are neighbors. */
INLINE size_t place_of(size_t g, size_t groups)
{
    const size_t j = g % L, longer = groups % L;
    return j * (groups / L) + (j < longer ? j : longer) + g / L;
}

/* Up to 8 columns of `count` rows of numbers: out[j] has number j of each row. */
INLINE void columns(const float *from, size_t stride, size_t count, size_t numbers, __m256i out[8])
{
    const __m256i some = _mm256_cmpgt_epi32(_mm256_set1_epi32(numbers < 8 ? (int)numbers : 8),
                                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    for (size_t r = 0; r < 8; r++)
        out[r] = r < count ? _mm256_castps_si256(_mm256_maskload_ps(from + r * stride, some))
                           : _mm256_setzero_si256();
    transpose(out);
}

/* One panel: rows are unpacked one by one, then turned by 32 values. */
INLINE void pack_panel(bz_type type, const size_t G, const int offset, const uint8_t *blocks,
                       size_t count, size_t k, bz_w8 unpacked, __m256i *panel)
{
    const size_t groups = k / G, row_bytes = bz_row_bytes(type, k), stride = 2 * group_vectors(G);
    const bool has_min = bz_type_has_min(type);
    for (size_t r = 0; r < count; r++)
        bz_kernels_avx2.unpack(type, blocks + r * row_bytes, bz_w8_at(unpacked, r * k), k);
    __m256i scales[8], minima[8];
    for (size_t i = 0; i < k; i += 32) {
        __m256i v[8];
        if (i % 128 == 0) { /* scales and minima of the next 128 values, by 16 values */
            columns(unpacked.s + i / 16, k / 16, count, (k - i) / 16, scales);
            if (has_min)
                columns(unpacked.m + i / 16, k / 16, count, (k - i) / 16, minima);
        }
        for (size_t r = 0; r < 8; r++)
            v[r] = r < count ? _mm256_add_epi8(load32(unpacked.q + r * k + i),
                                               _mm256_set1_epi8((char)offset))
                             : _mm256_setzero_si256();
        transpose(v);
        for (size_t g = i / G; g < (i + 32) / G; g++) {
            __m256i *to = panel + place_of(g, groups) * stride;
            const __m256i *from = v + (g * G - i) / 4;
            for (size_t t = 0; t < G / 4; t++)
                to[VALUES + t] = from[t];
            if (VNNI) {
                to[2] = _mm256_setzero_si256();
                for (size_t t = 0; t < G / 4; t++)
                    to[2] = _mm256_sub_epi32(to[2], dot4(_mm256_set1_epi8((char)0x80), from[t]));
            }
            to[0] = scales[g * G / 16 % 8];
            if (has_min)
                to[1] = minima[g * G / 16 % 8];
        }
    }
}

INLINE size_t pair_vectors(const size_t G, size_t k)
{
    return k / G * 2 * group_vectors(G);
}

/* Added to the weights of a panel. */
static int offset_of(bz_type type)
{
    switch (type) {
    case BZ_Q3_K: return 4;
    case BZ_Q6_K: return 32;
    case BZ_Q4_0: return 8;
    case BZ_Q5_0: return 16;
    case BZ_MXFP4: return 12;
    default: return 0;
    }
}

static void pack(bz_type type, const uint8_t *blocks, size_t count, size_t k, bz_w8 unpacked,
                 void *panels)
{
    const size_t G = bz_product_group(type), row_bytes = bz_row_bytes(type, k);
    const int offset = VNNI ? 0 : offset_of(type);
    for (size_t p = 0; p < BZ_PRODUCT_TILE / 8; p++) {
        const size_t first = 8 * p, n = count <= first ? 0 : count - first < 8 ? count - first : 8;
        __m256i *panel = (__m256i *)panels + p / 2 * pair_vectors(G, k) + p % 2 * group_vectors(G);
        if (G == 16)
            pack_panel(type, 16, offset, blocks + first * row_bytes, n, k, unpacked, panel);
        else
            pack_panel(type, 32, offset, blocks + first * row_bytes, n, k, unpacked, panel);
    }
}

INLINE __m256i four_values(const uint8_t *p)
{
    int32_t v;
    memcpy(&v, p, sizeof v);
    return _mm256_set1_epi32(v);
}

#if VNNI

/* Exact products of a group, two panels at w and u by R activation rows. */
INLINE void group_products(const size_t R, const weights_of how, const __m256i *w, const __m256i *u,
                           const uint8_t *x, const int32_t *totals, __m256i p[][2])
{
    enum { B = BZ_BLOCK_ROWS };
    (void)totals;
    for (size_t r = 0; r < R; r++) {
        p[r][0] = w[2];
        p[r][1] = u[2];
    }
    for (size_t t = 0; t < how.G / 4; t++, x += 4 * B) {
        const __m256i w0 = w[VALUES + t], w1 = u[VALUES + t];
        for (size_t r = 0; r < R; r++) {
            const __m256i v = four_values(x + 4 * r);
            p[r][0] = add_dot4(p[r][0], v, w0);
            p[r][1] = add_dot4(p[r][1], v, w1);
        }
    }
}

#else

/* Exact products of a group, two panels at w and u by R activation rows. */
INLINE void group_products(const size_t R, const weights_of how, const __m256i *w, const __m256i *u,
                           const uint8_t *x, const int32_t *totals, __m256i p[][2])
{
    enum { B = BZ_BLOCK_ROWS };
    const size_t run = how.add ? how.add < how.G / 4 ? how.add : how.G / 4 : 1;
    for (size_t t = 0; t < how.G / 4; t += run) {
        __m256i pairs[B][2];
        for (size_t i = 0; i < run; i++, x += 4 * B) {
            const __m256i w0 = w[VALUES + t + i], w1 = u[VALUES + t + i];
            for (size_t r = 0; r < R; r++) {
                const __m256i v = four_values(x + 4 * r);
                __m256i a, b;
                if (how.add) {
                    a = _mm256_maddubs_epi16(w0, v);
                    b = _mm256_maddubs_epi16(w1, v);
                } else {
                    a = _mm256_maddubs_epi16(_mm256_abs_epi8(w0), _mm256_sign_epi8(v, w0));
                    b = _mm256_maddubs_epi16(_mm256_abs_epi8(w1), _mm256_sign_epi8(v, w1));
                }
                pairs[r][0] = i ? _mm256_add_epi16(pairs[r][0], a) : a;
                pairs[r][1] = i ? _mm256_add_epi16(pairs[r][1], b) : b;
            }
        }
        for (size_t r = 0; r < R; r++)
            for (size_t c = 0; c < 2; c++)
                p[r][c] = t ? _mm256_add_epi32(p[r][c], widen(pairs[r][c])) : widen(pairs[r][c]);
    }
    for (size_t r = 0; how.offset && r < R; r++) {
        const __m256i low =
            _mm256_mullo_epi32(_mm256_set1_epi32(totals[r]), _mm256_set1_epi32(how.offset));
        p[r][0] = _mm256_sub_epi32(p[r][0], low);
        p[r][1] = _mm256_sub_epi32(p[r][1], low);
    }
}

#endif

/* Two panels by R rows from row `row` of the block on. */
INLINE void multiply_pair(const size_t R, const weights_of how, const __m256i *panels, size_t count,
                          const bz_product_block *x, size_t row, size_t k, float *out,
                          size_t stride)
{
    enum { B = BZ_BLOCK_ROWS };
    const size_t G = how.G, groups = k / G, V = group_vectors(G);
    const float *sums = (G == 16 ? x->sum16 : x->sum32) + row, *d = x->d + row;
    const int32_t *totals = (G == 16 ? x->total16 : x->total32) + row;
    __m256 total[B][2];
    for (size_t r = 0; r < R; r++)
        total[r][0] = total[r][1] = _mm256_setzero_ps();
    for (size_t j = 0; j < L && j < groups; j++) {
        __m256 a[B][2];
        for (size_t r = 0; r < R; r++)
            a[r][0] = a[r][1] = _mm256_setzero_ps();
        for (size_t g = j; g < groups; g += L, panels += 2 * V) {
            __m256i p[B][2];
            group_products(R, how, panels, panels + V, x->q + (g * G) * B + 4 * row, totals + g * B,
                           p);
            for (size_t c = 0; c < 2; c++) {
                const __m256 s = _mm256_castsi256_ps(panels[c * V]),
                             m = _mm256_castsi256_ps(panels[c * V + 1]);
                for (size_t r = 0; r < R; r++) {
                    const __m256 scale = _mm256_mul_ps(s, _mm256_set1_ps(d[g * G / 32 * B + r]));
                    a[r][c] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(p[r][c]), scale, a[r][c]);
                    if (how.has_min)
                        a[r][c] = _mm256_fnmadd_ps(m, _mm256_set1_ps(sums[g * B + r]), a[r][c]);
                }
            }
        }
        for (size_t r = 0; r < R; r++)
            for (size_t c = 0; c < 2; c++)
                total[r][c] = _mm256_add_ps(total[r][c], a[r][c]);
    }
    for (size_t r = 0; r < R; r++) {
        float results[16];
        _mm256_storeu_ps(results, total[r][0]);
        _mm256_storeu_ps(results + 8, total[r][1]);
        memcpy(out + (row + r) * stride, results, (count < 16 ? count : 16) * sizeof *out);
    }
}

INLINE void multiply_how(const weights_of how, const __m256i *panels, size_t count,
                         const void *block, size_t rows, size_t k, float *out, size_t stride)
{
    enum { R = 3 }; /* rows whose sums fit the registers */
    const bz_product_block x = bz_product_block_at(block, k);
    for (size_t c = 0; c < count; c += 16, panels += pair_vectors(how.G, k)) {
        size_t row = 0;
        for (; row + R <= rows; row += R)
            multiply_pair(R, how, panels, count - c, &x, row, k, out + c, stride);
        for (; row < rows; row++)
            multiply_pair(1, how, panels, count - c, &x, row, k, out + c, stride);
    }
}

#define MULTIPLY(name, ...)                                                                        \
    static void multiply_##name(const void *panels, size_t count, const void *block, size_t rows,  \
                                size_t k, float *out, size_t stride)                               \
    {                                                                                              \
        const weights_of how = __VA_ARGS__;                                                        \
        multiply_how(how, panels, count, block, rows, k, out, stride);                             \
    }

#if VNNI

/* One function for all types of a form. */
MULTIPLY(16, {16, false, 0, 0})
MULTIPLY(16_min, {16, true, 0, 0})
MULTIPLY(32, {32, false, 0, 0})
MULTIPLY(32_min, {32, true, 0, 0})

static void multiply(bz_type type, const void *panels, size_t count, const void *block, size_t rows,
                     size_t k, float *out, size_t stride)
{
    const bool has_min = bz_type_has_min(type);
    if (bz_product_group(type) == 16)
        (has_min ? multiply_16_min : multiply_16)(panels, count, block, rows, k, out, stride);
    else
        (has_min ? multiply_32_min : multiply_32)(panels, count, block, rows, k, out, stride);
}

#else

MULTIPLY(nibble, W_NIBBLE)
MULTIPLY(five, W_FIVE)
MULTIPLY(q2_k, W_Q2_K)
MULTIPLY(q3_k, W_Q3_K)
MULTIPLY(q6_k, W_Q6_K)
MULTIPLY(q4_0, W_Q4_0)
MULTIPLY(q5_0, W_Q5_0)
MULTIPLY(mxfp4, W_MXFP4)
MULTIPLY(signed, W_SIGNED)

static void multiply(bz_type type, const void *panels, size_t count, const void *block, size_t rows,
                     size_t k, float *out, size_t stride)
{
    switch (type) {
    case BZ_Q4_1:
    case BZ_Q4_K: multiply_nibble(panels, count, block, rows, k, out, stride); return;
    case BZ_Q5_1:
    case BZ_Q5_K: multiply_five(panels, count, block, rows, k, out, stride); return;
    case BZ_Q2_K: multiply_q2_k(panels, count, block, rows, k, out, stride); return;
    case BZ_Q3_K: multiply_q3_k(panels, count, block, rows, k, out, stride); return;
    case BZ_Q6_K: multiply_q6_k(panels, count, block, rows, k, out, stride); return;
    case BZ_Q4_0: multiply_q4_0(panels, count, block, rows, k, out, stride); return;
    case BZ_Q5_0: multiply_q5_0(panels, count, block, rows, k, out, stride); return;
    case BZ_MXFP4: multiply_mxfp4(panels, count, block, rows, k, out, stride); return;
    default: multiply_signed(panels, count, block, rows, k, out, stride);
    }
}

#endif

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
