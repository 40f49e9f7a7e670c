/* Integer products for AVX-512 with VNNI (products.h): 16 lanes.
 *
 * vpdpbusd multiplies unsigned by signed bytes and adds four products to each 32-bit lane. Weights
 * are unsigned here (q + offset; the offset's part, offset times the sum of the activations, is
 * subtracted in integers), except in packed panels, where activations are (x + 128). */
#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#include "cpu/products_avx512.h"
#include "file/blocks.h"

enum { L = 16, MAX_SHARED = 4 /* rows of activations that share a step */ };

/* ---- reductions ---- */

/* The sums of the four 128-bit parts of v0 .. v3: lane 4i + j is part i of vj. */
INLINE __m512i fold(__m512i v0, __m512i v1, __m512i v2, __m512i v3)
{
    __m512i a = _mm512_add_epi32(_mm512_unpacklo_epi32(v0, v1), _mm512_unpackhi_epi32(v0, v1));
    __m512i b = _mm512_add_epi32(_mm512_unpacklo_epi32(v2, v3), _mm512_unpackhi_epi32(v2, v3));
    return _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
}

/* Sums of two neighbors, if all of v0 and v1 fit 16 bits. */
INLINE __m512i fold_pairs(__m512i v0, __m512i v1)
{
    return _mm512_madd_epi16(_mm512_packs_epi32(v0, v1), _mm512_set1_epi16(1));
}

/* fold, if the lanes fit 16 bits. */
INLINE __m512i fold_half(__m512i v0, __m512i v1, __m512i v2, __m512i v3)
{
    __m512 a = _mm512_castsi512_ps(fold_pairs(v0, v1)), b = _mm512_castsi512_ps(fold_pairs(v2, v3));
    return _mm512_add_epi32(_mm512_castps_si512(_mm512_shuffle_ps(a, b, 0x88)),
                            _mm512_castps_si512(_mm512_shuffle_ps(a, b, 0xDD)));
}

/* fold, if sums of two lanes fit 16 bits. */
INLINE __m512i fold_short(__m512i v0, __m512i v1, __m512i v2, __m512i v3)
{
    return fold_pairs(fold_pairs(v0, v1), fold_pairs(v2, v3));
}

/* Rows of 16 dwords to columns. */
INLINE void transpose(__m512i v[16])
{
    __m512i t[16];
    for (int i = 0; i < 16; i += 4) {
        __m512i a = _mm512_unpacklo_epi32(v[i], v[i + 1]),
                b = _mm512_unpackhi_epi32(v[i], v[i + 1]),
                c = _mm512_unpacklo_epi32(v[i + 2], v[i + 3]),
                d = _mm512_unpackhi_epi32(v[i + 2], v[i + 3]);
        t[i] = _mm512_unpacklo_epi64(a, c);
        t[i + 1] = _mm512_unpackhi_epi64(a, c);
        t[i + 2] = _mm512_unpacklo_epi64(b, d);
        t[i + 3] = _mm512_unpackhi_epi64(b, d);
    }
    for (int i = 0; i < 4; i++) { /* t[i + 4r]: column 4q + i of rows 4r .. 4r + 3 in part q */
        __m512i a = _mm512_shuffle_i32x4(t[i], t[i + 4], 0x88),
                b = _mm512_shuffle_i32x4(t[i], t[i + 4], 0xDD),
                c = _mm512_shuffle_i32x4(t[i + 8], t[i + 12], 0x88),
                d = _mm512_shuffle_i32x4(t[i + 8], t[i + 12], 0xDD);
        v[i] = _mm512_shuffle_i32x4(a, c, 0x88);
        v[i + 4] = _mm512_shuffle_i32x4(b, d, 0x88);
        v[i + 8] = _mm512_shuffle_i32x4(a, c, 0xDD);
        v[i + 12] = _mm512_shuffle_i32x4(b, d, 0xDD);
    }
}

/* ---- few activation rows ---- */

/* 16 groups of a weight row: exact products, scales and minima, by lane. */
typedef struct groups16 {
    __m512i p;
    __m512 s, m;
} groups16;

/* The activations of 16 groups: bytes in the type's order, then by lane scale, scale * sum and sum.
 */
typedef struct few {
    const __m512i *q;
    __m512 d, sum;
    __m512i total;
} few;

INLINE __m512i dot4(__m512i sum, __m512i w, __m512i x)
{
    return _mm512_dpbusd_epi32(sum, w, x);
}

INLINE __m512i dot8(__m512i w0, __m512i x0, __m512i w1, __m512i x1)
{
    return dot4(dot4(_mm512_setzero_si512(), w0, x0), w1, x1);
}

INLINE __m512i minus(__m512i p, __m512i total, const int offset)
{
    return _mm512_sub_epi32(p, _mm512_mullo_epi32(total, _mm512_set1_epi32(offset)));
}

INLINE __m512i low_bits(__m512i v, const int mask)
{
    return _mm512_and_si512(v, _mm512_set1_epi8((char)mask));
}

INLINE __m512i high_nibbles(__m512i v)
{
    return low_bits(_mm512_srli_epi16(v, 4), 15);
}

INLINE __m512i load64(const void *p)
{
    return _mm512_loadu_si512(p);
}

INLINE __m512 bytes_to_floats(__m128i v)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(v));
}

INLINE uint64_t both(uint32_t low, uint32_t high)
{
    return (uint64_t)high << 32 | low;
}

INLINE __m128i two64(uint64_t a, uint64_t b)
{
    return _mm_set_epi64x((long long)b, (long long)a);
}

/* First and second halves of the four groups in a and b; groups are 32 bytes. */
INLINE __m512i firsts(__m512i a, __m512i b)
{
    return _mm512_shuffle_i32x4(a, b, 0x88);
}

INLINE __m512i seconds(__m512i a, __m512i b)
{
    return _mm512_shuffle_i32x4(a, b, 0xDD);
}

/* Two f16 numbers of each of two blocks: first[0 0 1 1 ...], second[0 0 1 1 ...] by lane. */
typedef struct two_scales {
    __m512 d, dmin;
} two_scales;

INLINE two_scales k_scales(const uint8_t *a, const uint8_t *b)
{
    __m512 v = _mm512_broadcast_f32x4(_mm_cvtph_ps(two64(both(bz_le32(a), bz_le32(b)), 0)));
    return (two_scales){_mm512_permute_ps(v, 0xA0), _mm512_permute_ps(v, 0xF5)};
}

/* Lane 4c + (0, 1, 2, 3): groups 2c and 2c + 1 of block a, 2c and 2c + 1 of block b. As
 * bz_q4_k_scales for both blocks: eight scales are 6 bits of bytes 0 .. 3, then the low nibbles of
 * bytes 8 .. 11 under two bits of bytes 0 .. 3; minima likewise from bytes 4 .. 7 and the high
 * nibbles. Reads 16 bytes from the scales on. */
INLINE void scales_k(const uint8_t *a, const uint8_t *b, const uint8_t *bytes_a,
                     const uint8_t *bytes_b, groups16 *g)
{
    const __m256i low = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 8, 9, 10, 11));
    const __m256i top = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(-1, -1, -1, -1, 0, 1, 2, 3, -1, -1, -1, -1, 4, 5, 6, 7));
    const __m256i shift = _mm256_setr_epi32(0, 0, 0, 4, 0, 0, 0, 4);
    const __m256i mask = _mm256_set1_epi64x(0x0F0F0F0F3F3F3F3F);
    const __m256i order = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15));
    const __m256i v =
        _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)bytes_a)),
                                _mm_loadu_si128((const __m128i *)bytes_b), 1);
    __m256i six = _mm256_and_si256(_mm256_srlv_epi32(_mm256_shuffle_epi8(v, low), shift), mask);
    six = _mm256_or_si256(six, _mm256_and_si256(_mm256_srli_epi32(_mm256_shuffle_epi8(v, top), 2),
                                                _mm256_set1_epi8(0x30)));
    six = _mm256_shuffle_epi8(_mm256_permute4x64_epi64(six, 0xD8), order); /* scales, minima */
    const two_scales d = k_scales(a, b);
    g->s = _mm512_mul_ps(d.d, bytes_to_floats(_mm256_castsi256_si128(six)));
    g->m = _mm512_mul_ps(d.dmin, bytes_to_floats(_mm256_extracti128_si256(six, 1)));
}

/* Products of the low and high nibbles of a block. */
INLINE void pair_q4_k(const uint8_t *q, const __m512i *x, __m512i *low, __m512i *high)
{
    const __m512i a = load64(q), b = load64(q + 64), first = firsts(a, b), second = seconds(a, b);
    *low = dot8(low_bits(first, 15), x[0], low_bits(second, 15), x[1]);
    *high = dot8(high_nibbles(first), x[2], high_nibbles(second), x[3]);
}

INLINE groups16 step_q4_k(const uint8_t *bytes, const uint8_t *next, const few *x)
{
    const bz_block_q4_k *a = (const void *)bytes, *b = (const void *)next;
    groups16 g;
    __m512i v[4];
    pair_q4_k(a->q, x->q, &v[0], &v[1]);
    pair_q4_k(b->q, x->q + 4, &v[2], &v[3]);
    g.p = fold_short(v[0], v[1], v[2], v[3]); /* 15 * 127 * 16 fits */
    scales_k(bytes, next, a->scales, b->scales, &g);
    return g;
}

/* The nibbles with 16 added where the bit is set; part c of 128 bits has its bit in every byte. */
INLINE __m512i add_fifth(__m512i nibbles, __m512i high, const int shift)
{
    const __m512i first = _mm512_set_epi64(
        0x4040404040404040, 0x4040404040404040, 0x1010101010101010, 0x1010101010101010,
        0x0404040404040404, 0x0404040404040404, 0x0101010101010101, 0x0101010101010101);
    const __m512i bit = shift ? _mm512_add_epi8(first, first) : first;
    return _mm512_mask_add_epi8(nibbles, _mm512_test_epi8_mask(high, bit), nibbles,
                                _mm512_set1_epi8(16));
}

INLINE void pair_q5_k(const bz_block_q5_k *w, const __m512i *x, __m512i *low, __m512i *high)
{
    const __m512i a = load64(w->q), b = load64(w->q + 64), first = firsts(a, b),
                  second = seconds(a, b);
    const __m512i h0 = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)w->high)),
                  h1 = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(w->high + 16)));
    *low = dot8(add_fifth(low_bits(first, 15), h0, 0), x[0], add_fifth(low_bits(second, 15), h1, 0),
                x[1]);
    *high = dot8(add_fifth(high_nibbles(first), h0, 1), x[2],
                 add_fifth(high_nibbles(second), h1, 1), x[3]);
}

INLINE groups16 step_q5_k(const uint8_t *bytes, const uint8_t *next, const few *x)
{
    const bz_block_q5_k *a = (const void *)bytes, *b = (const void *)next;
    groups16 g;
    __m512i v[4];
    pair_q5_k(a, x->q, &v[0], &v[1]);
    pair_q5_k(b, x->q + 4, &v[2], &v[3]);
    g.p = fold_half(v[0], v[1], v[2], v[3]); /* 31 * 127 * 8 fits, twice that does not */
    scales_k(bytes, next, a->scales, b->scales, &g);
    return g;
}

/* 256 values: 16 groups of 16. Part i of v[j] is group 4j + i. */
INLINE groups16 step_q6_k(const uint8_t *bytes, const uint8_t *next, const few *x)
{
    (void)next;
    const bz_block_q6_k *b = (const void *)bytes;
    const __m512i up = _mm512_set_epi64(0x0002000200020002, 0x0002000200020002, 0x0002000200020002,
                                        0x0002000200020002, 0x0004000400040004, 0x0004000400040004,
                                        0x0004000400040004, 0x0004000400040004),
                  down = _mm512_set_epi64(0x0002000200020002, 0x0002000200020002,
                                          0x0002000200020002, 0x0002000200020002, 0, 0, 0, 0);
    __m512i v[4];
    for (int n = 0; n < 2; n++) {
        const __m512i low = load64(b->low + 64 * n);
        const __m512i high =
            _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i *)(b->high + 32 * n)));
        const __m512i first = _mm512_or_si512(low_bits(low, 15),
                                              low_bits(_mm512_sllv_epi16(high, up), 0x30)),
                      second = _mm512_or_si512(high_nibbles(low),
                                               low_bits(_mm512_srlv_epi16(high, down), 0x30));
        v[2 * n] = dot4(_mm512_setzero_si512(), first, x->q[2 * n]);
        v[2 * n + 1] = dot4(_mm512_setzero_si512(), second, x->q[2 * n + 1]);
    }
    /* 63 * 127 * 4 fits 16 bits */
    const __m512i p = fold_half(v[0], v[1], v[2], v[3]);
    const __m128i order = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m128i scales = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)b->scales), order);
    const __m512 d = _mm512_set1_ps(_cvtsh_ss(bz_le16(b->d)));
    return (groups16){.p = _mm512_sub_epi32(p, _mm512_slli_epi32(x->total, 5)),
                      .s = _mm512_mul_ps(d, _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(scales)))};
}

/* The f16 numbers at the start of 16 blocks, by lane: lane 4i + j is block 4j + i. */
INLINE __m512 block_scales(const uint8_t *bytes, const size_t size)
{
#define AT(l) (short)bz_le16(bytes + (4 * ((l) % 4) + (l) / 4) * size)
    return _mm512_cvtph_ps(_mm256_setr_epi16(AT(0), AT(1), AT(2), AT(3), AT(4), AT(5), AT(6), AT(7),
                                             AT(8), AT(9), AT(10), AT(11), AT(12), AT(13), AT(14),
                                             AT(15)));
#undef AT
}

INLINE groups16 step_q8_0(const uint8_t *bytes, const uint8_t *next, const few *x)
{
    (void)next;
    enum { SIZE = sizeof(bz_block_q8_0) };
    __m512i v[4];
    for (int j = 0; j < 4; j++) {
        const uint8_t *at = bytes + 4 * j * SIZE + 2;
        __m512i two[2];
        for (int h = 0; h < 2; h++)
            two[h] = _mm512_xor_si512(
                _mm512_inserti64x4(_mm512_castsi256_si512(
                                       _mm256_loadu_si256((const __m256i *)(at + 2 * h * SIZE))),
                                   _mm256_loadu_si256((const __m256i *)(at + (2 * h + 1) * SIZE)),
                                   1),
                _mm512_set1_epi8((char)0x80));
        v[j] = dot8(firsts(two[0], two[1]), x->q[2 * j], seconds(two[0], two[1]), x->q[2 * j + 1]);
    }
    return (groups16){
        .p = _mm512_sub_epi32(fold(v[0], v[1], v[2], v[3]), _mm512_slli_epi32(x->total, 7)),
        .s = block_scales(bytes, SIZE)};
}

/* The 16 bytes at `at` of each of four blocks. */
INLINE __m512i four_blocks(const uint8_t *at, const size_t size)
{
    __m512i v = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)at));
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(at + size)), 1);
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(at + 2 * size)), 2);
    return _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(at + 3 * size)), 3);
}

INLINE groups16 step_q4_0(const uint8_t *bytes, const uint8_t *next, const few *x)
{
    (void)next;
    enum { SIZE = sizeof(bz_block_q4_0) };
    __m512i v[4];
    for (int j = 0; j < 4; j++) {
        const __m512i q = four_blocks(bytes + 4 * j * SIZE + 2, SIZE);
        v[j] = dot8(low_bits(q, 15), x->q[2 * j], high_nibbles(q), x->q[2 * j + 1]);
    }
    return (groups16){
        .p = _mm512_sub_epi32(fold_short(v[0], v[1], v[2], v[3]), _mm512_slli_epi32(x->total, 3)),
        .s = block_scales(bytes, SIZE)};
}

/* Nibbles that select from a table of values, to which `offset` was added. */
INLINE __m512i dot_table(__m512i q, __m128i values, const __m512i *x)
{
    const __m512i table = _mm512_broadcast_i32x4(values);
    return dot8(_mm512_shuffle_epi8(table, low_bits(q, 15)), x[0],
                _mm512_shuffle_epi8(table, high_nibbles(q)), x[1]);
}

INLINE __m128i iq4_unsigned(void)
{
    return _mm_xor_si128(_mm_setr_epi8(BZ_IQ4_VALUES), _mm_set1_epi8((char)0x80));
}

INLINE groups16 step_iq4_nl(const uint8_t *bytes, const uint8_t *next, const few *x)
{
    (void)next;
    enum { SIZE = sizeof(bz_block_q4_0) };
    __m512i v[4];
    for (int j = 0; j < 4; j++)
        v[j] = dot_table(four_blocks(bytes + 4 * j * SIZE + 2, SIZE), iq4_unsigned(), x->q + 2 * j);
    return (groups16){
        .p = _mm512_sub_epi32(fold(v[0], v[1], v[2], v[3]), _mm512_slli_epi32(x->total, 7)),
        .s = block_scales(bytes, SIZE)};
}

INLINE groups16 step_iq4_xs(const uint8_t *bytes, const uint8_t *next, const few *x)
{
    const bz_block_iq4_xs *a = (const void *)bytes, *b = (const void *)next;
    __m512i v[4];
    for (int j = 0; j < 4; j++)
        v[j] = dot_table(load64((j < 2 ? a : b)->q + 64 * (j % 2)), iq4_unsigned(), x->q + 2 * j);
    uint32_t sa[2], sb[2];
    bz_iq4_xs_scales(a, sa);
    bz_iq4_xs_scales(b, sb);
    const __m128i order = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m128i scales = _mm_sub_epi8(
        _mm_shuffle_epi8(two64(both(sa[0], sa[1]), both(sb[0], sb[1])), order), _mm_set1_epi8(32));
    const __m512 d = _mm512_broadcast_f32x4(
        _mm_cvtph_ps(_mm_setr_epi16((short)bz_le16(a->d), (short)bz_le16(a->d),
                                    (short)bz_le16(b->d), (short)bz_le16(b->d), 0, 0, 0, 0)));
    return (groups16){
        .p = _mm512_sub_epi32(fold(v[0], v[1], v[2], v[3]), _mm512_slli_epi32(x->total, 7)),
        .s = _mm512_mul_ps(d, _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(scales)))};
}

INLINE groups16 step_mxfp4(const uint8_t *bytes, const uint8_t *next, const few *x)
{
    (void)next;
    enum { SIZE = sizeof(bz_block_mxfp4), OFFSET = 12 };
    const __m128i table = _mm_add_epi8(_mm_setr_epi8(BZ_MXFP4_VALUES), _mm_set1_epi8(OFFSET));
    __m512i v[4];
    for (int j = 0; j < 4; j++)
        v[j] = dot_table(four_blocks(bytes + 4 * j * SIZE + 1, SIZE), table, x->q + 2 * j);
#define AT(l) (char)bytes[(4 * ((l) % 4) + (l) / 4) * SIZE]
    const __m512i e = _mm512_cvtepu8_epi32(_mm_setr_epi8(AT(0), AT(1), AT(2), AT(3), AT(4), AT(5),
                                                         AT(6), AT(7), AT(8), AT(9), AT(10), AT(11),
                                                         AT(12), AT(13), AT(14), AT(15)));
#undef AT
    /* bz_mxfp4_scale_bits */
    const __m512i one = _mm512_set1_epi32(1);
    const __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(e, one), 23);
    const __m512i bits = _mm512_mask_sllv_epi32(normal, _mm512_cmple_epi32_mask(e, one),
                                                _mm512_set1_epi32(0x00200000), e);
    /* 24 * 127 * 8 fits 16 bits */
    return (groups16){.p = minus(fold_half(v[0], v[1], v[2], v[3]), x->total, OFFSET),
                      .s = _mm512_castsi512_ps(bits)};
}

/* Unpacked weights: bytes in an array, scales and minima of 16 values each. */
INLINE groups16 step_unpacked(bz_w8 w, const bool has_min, const size_t G, const few *x)
{
    const __m512i offset = _mm512_set1_epi8((char)0x80);
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i twice = _mm512_slli_epi32(order, 1);
    __m512i v[4];
    for (int j = 0; j < 4; j++) {
        if (G == 16) {
            v[j] = dot4(_mm512_setzero_si512(), _mm512_xor_si512(load64(w.q + 64 * j), offset),
                        x->q[j]);
            continue;
        }
        const __m512i a = _mm512_xor_si512(load64(w.q + 128 * j), offset),
                      b = _mm512_xor_si512(load64(w.q + 128 * j + 64), offset);
        v[j] = dot8(firsts(a, b), x->q[2 * j], seconds(a, b), x->q[2 * j + 1]);
    }
    groups16 g = {
        .p = _mm512_sub_epi32(fold(v[0], v[1], v[2], v[3]), _mm512_slli_epi32(x->total, 7))};
    g.s = G == 16 ? _mm512_permutexvar_ps(order, _mm512_loadu_ps(w.s))
                  : _mm512_permutex2var_ps(_mm512_loadu_ps(w.s), twice, _mm512_loadu_ps(w.s + 16));
    if (has_min)
        g.m = G == 16
                  ? _mm512_permutexvar_ps(order, _mm512_loadu_ps(w.m))
                  : _mm512_permutex2var_ps(_mm512_loadu_ps(w.m), twice, _mm512_loadu_ps(w.m + 16));
    return g;
}

/* The row x in the order of a type: for 16 groups 16 * G bytes in parts of 16, then by lane. */
typedef struct row_order {
    uint8_t part[32];  /* 16 bytes of the 16 groups, by position */
    uint8_t group[16]; /* by lane */
} row_order;

/* Groups of 16; groups of 32, whose first and second halves are in different vectors; the same for
 * Q4_K and Q5_K, whose low and high nibbles are neighboring groups. */
static const row_order order16 = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
                                  {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15}};
static const row_order order32 = {{0,  2,  4,  6,  1,  3,  5,  7,  8,  10, 12, 14, 9,  11, 13, 15,
                                   16, 18, 20, 22, 17, 19, 21, 23, 24, 26, 28, 30, 25, 27, 29, 31},
                                  {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15}};
static const row_order order_k = {{0,  4,  8,  12, 1,  5,  9,  13, 2,  6,  10, 14, 3,  7,  11, 15,
                                   16, 20, 24, 28, 17, 21, 25, 29, 18, 22, 26, 30, 19, 23, 27, 31},
                                  {0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15}};

typedef struct few_row {
    const row_order *order;
    size_t rounds; /* of 16 groups */
    __m512i *q;    /* [rounds][G / 4] */
    __m512 *d, *sum;
    __m512i *total; /* [rounds] */
    uint8_t *rest;  /* memory after it */
} few_row;

size_t bz_row_bytes_avx512(size_t k)
{
    const size_t whole = (k + 511) / 512 * 512;
    return whole + 3 * whole / 4 + whole + whole / 2;
}

INLINE few_row few_row_at(const size_t G, size_t k, const row_order *order, void *memory)
{
    const size_t rounds = (k + 16 * G - 1) / (16 * G);
    few_row row = {.order = order, .rounds = rounds, .q = memory};
    row.total = row.q + rounds * G / 4;
    row.d = (__m512 *)(void *)(row.total + rounds);
    row.sum = row.d + rounds;
    row.rest = (uint8_t *)(row.sum + rounds);
    return row;
}

INLINE void arrange(const few_row *row, const bz_q8 *x, const size_t G, size_t k)
{
    const row_order *order = row->order;
    __m512i *q = row->q;
    for (size_t t = 0; t < row->rounds; t++) {
        float scales[16];
        for (size_t i = 0; i < G; i++) {
            const size_t at = 16 * (t * G + order->part[i]);
            _mm_store_si128((__m128i *)(void *)(q + t * G / 4) + i,
                            at < k ? _mm_loadu_si128((const __m128i *)(x->q + at))
                                   : _mm_setzero_si128());
        }
        for (size_t l = 0; l < 16; l++) {
            const size_t at = (16 * t + order->group[l]) * G;
            scales[l] = at < k ? x->d[at / 32] : 0;
        }
        const __m512i one = _mm512_set1_epi8(1), *v = q + t * G / 4;
        __m512i part[4];
        for (size_t j = 0; j < 4; j++)
            part[j] = G == 16 ? dot4(_mm512_setzero_si512(), one, v[j])
                              : dot8(one, v[2 * j], one, v[2 * j + 1]);
        row->total[t] = fold(part[0], part[1], part[2], part[3]);
        row->d[t] = _mm512_loadu_ps(scales);
        row->sum[t] = _mm512_mul_ps(row->d[t], _mm512_cvtepi32_ps(row->total[t]));
    }
}

void bz_arrange_row_avx512(bz_type type, const bz_q8 *x, size_t k, void *memory)
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

INLINE __m512 add_groups(__m512 a, const groups16 *g, const bool has_min, const few_row *x,
                         size_t t)
{
    a = _mm512_fmadd_ps(_mm512_cvtepi32_ps(g->p), _mm512_mul_ps(g->s, x->d[t]), a);
    return has_min ? _mm512_fnmadd_ps(g->m, x->sum[t], a) : a;
}

INLINE few few_at(const few_row *x, const size_t G, size_t t)
{
    return (few){.q = x->q + t * G / 4, .total = x->total[t]};
}

/* out[i] = sum of the lanes of row i in the order of their groups. */
static void add_lanes(__m512i lanes[16], const row_order *order, size_t count, float *out)
{
    __m512i by_group[16];
    transpose(lanes);
    for (size_t l = 0; l < 16; l++)
        by_group[order->group[l]] = lanes[l];
    __m512 sum = _mm512_castsi512_ps(by_group[0]);
    for (size_t g = 1; g < 16; g++)
        sum = _mm512_add_ps(sum, _mm512_castsi512_ps(by_group[g]));
    _mm512_mask_storeu_ps(out, (__mmask16)((1u << count) - 1), sum);
}

/* Weights are read once and in order, but the processor's own prefetching ends at each page. The
 * address may be beyond the last block: prefetching never faults. */
INLINE void fetch_ahead(const uint8_t *at, const size_t bytes)
{
    enum { AHEAD = 8192 };
    for (size_t i = 0; i < bytes; i += 64)
        _mm_prefetch((const char *)((uintptr_t)at + AHEAD + i), _MM_HINT_T0);
}

typedef groups16 (*step_function)(const uint8_t *bytes, const uint8_t *next, const few *x);

/* What is needed to read a type's blocks: size bytes for `values` values. */
typedef struct block_form {
    step_function step;
    bool has_min;
    size_t G, values, size;
} block_form;

/* a[r] of one weight row for R rows of activations. A step's unpacked weights serve all of them,
 * as nothing is stored in between. */
INLINE void add_row(const size_t R, const block_form f, const uint8_t *blocks, const few_row *x,
                    size_t k, __m512 a[MAX_SHARED])
{
    enum { MAX_BYTES = 16 * 34 };
    const size_t round_bytes = 16 * f.G / f.values * f.size, whole = k / (16 * f.G);
    for (size_t r = 0; r < R; r++)
        a[r] = _mm512_setzero_ps();
    size_t t = 0;
    for (; t < whole; t++) {
        const uint8_t *at = blocks + t * round_bytes;
        fetch_ahead(at, round_bytes);
        for (size_t r = 0; r < R; r++) {
            const few v = few_at(&x[r], f.G, t);
            const groups16 g = f.step(at, at + f.size, &v);
            a[r] = add_groups(a[r], &g, f.has_min, &x[r], t);
        }
    }
    if (t < x->rounds) {
        uint8_t rest[MAX_BYTES] = {0};
        memcpy(rest, blocks + t * round_bytes, k / f.values * f.size - t * round_bytes);
        for (size_t r = 0; r < R; r++) {
            const few v = few_at(&x[r], f.G, t);
            const groups16 g = f.step(rest, rest + f.size, &v);
            a[r] = add_groups(a[r], &g, f.has_min, &x[r], t);
        }
    }
}

/* out[r * stride + i] of n <= 16 weight rows. */
INLINE void rows16(const size_t R, const block_form f, const uint8_t *blocks, size_t n,
                   const few_row *x, size_t k, float *out, size_t stride)
{
    __m512i lanes[MAX_SHARED][16];
    for (size_t i = 0; i < n; i++) {
        __m512 a[MAX_SHARED];
        add_row(R, f, blocks + i * (k / f.values * f.size), x, k, a);
        for (size_t r = 0; r < R; r++)
            lanes[r][i] = _mm512_castps_si512(a[r]);
    }
    for (size_t r = 0; r < R; r++) {
        for (size_t i = n; i < 16; i++)
            lanes[r][i] = _mm512_setzero_si512();
        add_lanes(lanes[r], x->order, n, out + r * stride);
    }
}

INLINE void rows_of(const block_form f, const row_order *order, const uint8_t *blocks, size_t count,
                    uint8_t *memory, size_t rows, size_t k, float *out, size_t stride)
{
    few_row x[BZ_FEW_ROWS];
    for (size_t r = 0; r < rows; r++)
        x[r] = few_row_at(f.G, k, order, memory + r * bz_row_bytes_avx512(k));
    for (size_t c = 0; c < count; c += 16) {
        const uint8_t *at = blocks + c * (k / f.values * f.size);
        const size_t n = count - c < 16 ? count - c : 16;
        size_t r = 0;
        for (; r + MAX_SHARED <= rows; r += MAX_SHARED)
            rows16(MAX_SHARED, f, at, n, x + r, k, out + r * stride + c, stride);
        for (; r + 2 <= rows; r += 2)
            rows16(2, f, at, n, x + r, k, out + r * stride + c, stride);
        if (r < rows)
            rows16(1, f, at, n, x + r, k, out + r * stride + c, stride);
    }
}

/* Types without a step of their own: each weight row is unpacked first. */
INLINE void rows_unpacked(bz_type type, const bool has_min, const size_t G, const uint8_t *blocks,
                          size_t count, uint8_t *memory, size_t rows, size_t k, float *out,
                          size_t stride)
{
    const row_order *order = G == 16 ? &order16 : &order32;
    const size_t row_bytes = bz_row_bytes(type, k);
    few_row x[BZ_FEW_ROWS];
    for (size_t r = 0; r < rows; r++)
        x[r] = few_row_at(G, k, order, memory + r * bz_row_bytes_avx512(k));
    const size_t padded = x->rounds * 16 * G;
    bz_w8 w = {.q = (int8_t *)x->rest};
    w.s = (float *)(void *)(x->rest + padded);
    w.m = w.s + padded / 16;
    memset(w.q, 0, padded + padded / 2);
    for (size_t c = 0; c < count; c += 16) {
        const size_t n = count - c < 16 ? count - c : 16;
        __m512i lanes[BZ_FEW_ROWS][16];
        for (size_t i = 0; i < n; i++) {
            bz_kernels_avx2.unpack(type, blocks + (c + i) * row_bytes, w, k);
            for (size_t r = 0; r < rows; r++) {
                __m512 a = _mm512_setzero_ps();
                for (size_t t = 0; t < x->rounds; t++) {
                    const few v = few_at(&x[r], G, t);
                    const groups16 g = step_unpacked(bz_w8_at(w, 16 * G * t), has_min, G, &v);
                    a = add_groups(a, &g, has_min, &x[r], t);
                }
                lanes[r][i] = _mm512_castps_si512(a);
            }
        }
        for (size_t r = 0; r < rows; r++) {
            for (size_t i = n; i < 16; i++)
                lanes[r][i] = _mm512_setzero_si512();
            add_lanes(lanes[r], order, n, out + r * stride + c);
        }
    }
}

void bz_rows_avx512(bz_type type, const uint8_t *blocks, size_t count, void *memory, size_t n,
                    size_t k, float *out, size_t stride)
{
#define BY(name, has_min, G, order, values, block)                                                 \
    rows_of((block_form){step_##name, has_min, G, values, sizeof(block)}, order, blocks, count,    \
            memory, n, k, out, stride);                                                            \
    return
    switch (type) {
    case BZ_Q4_K: BY(q4_k, true, 32, &order_k, 256, bz_block_q4_k);
    case BZ_Q5_K: BY(q5_k, true, 32, &order_k, 256, bz_block_q5_k);
    case BZ_Q6_K: BY(q6_k, false, 16, &order16, 256, bz_block_q6_k);
    case BZ_Q8_0: BY(q8_0, false, 32, &order32, 32, bz_block_q8_0);
    case BZ_Q4_0: BY(q4_0, false, 32, &order32, 32, bz_block_q4_0);
    case BZ_IQ4_NL: BY(iq4_nl, false, 32, &order32, 32, bz_block_q4_0);
    case BZ_IQ4_XS: BY(iq4_xs, false, 32, &order32, 256, bz_block_iq4_xs);
    case BZ_MXFP4: BY(mxfp4, false, 32, &order32, 32, bz_block_mxfp4);
    case BZ_Q2_K: rows_unpacked(type, true, 16, blocks, count, memory, n, k, out, stride); return;
    case BZ_Q3_K: rows_unpacked(type, false, 16, blocks, count, memory, n, k, out, stride); return;
    case BZ_Q5_0: rows_unpacked(type, false, 32, blocks, count, memory, n, k, out, stride); return;
    default:
        rows_unpacked(type, true, 32, blocks, count, memory, n, k, out, stride); /* Q4_1, Q5_1 */
    }
#undef BY
}

/* ---- many activation rows ---- */

size_t bz_panel_bytes_avx512(size_t k)
{
    return k / 16 * 2 * group_vectors(16) * 64; /* the most: groups of 16 */
}

/* Where group g is: a_j's groups are neighbors. */
INLINE size_t place_of(size_t g, size_t groups)
{
    const size_t j = g % L, longer = groups % L;
    return j * (groups / L) + (j < longer ? j : longer) + g / L;
}

/* Up to 16 columns of `count` rows of numbers: out[j] has number j of each row. */
INLINE void columns(const float *from, size_t stride, size_t count, size_t numbers, __m512i out[16])
{
    const __mmask16 some = (__mmask16)(numbers < 16 ? (1u << numbers) - 1 : 0xFFFF);
    for (size_t r = 0; r < 16; r++)
        out[r] =
            r < count ? _mm512_maskz_loadu_epi32(some, from + r * stride) : _mm512_setzero_si512();
    transpose(out);
}

/* One panel: rows are unpacked one by one, then turned by 64 values. */
INLINE void pack_panel(bz_type type, const size_t G, const uint8_t *blocks, size_t count, size_t k,
                       bz_w8 unpacked, __m512i *panel, const size_t stride)
{
    const size_t groups = k / G, row_bytes = bz_row_bytes(type, k);
    const bool has_min = bz_type_has_min(type);
    __m512i scales[16], minima[16];
    for (size_t r = 0; r < count; r++)
        bz_kernels_avx2.unpack(
            type, blocks + r * row_bytes,
            (bz_w8){unpacked.q + r * k, unpacked.s + r * k / 16, unpacked.m + r * k / 16}, k);
    for (size_t i = 0; i < k; i += 64) {
        const size_t values = k - i < 64 ? k - i : 64;
        const __mmask64 some = values == 64 ? ~(__mmask64)0 : ((__mmask64)1 << values) - 1;
        __m512i v[16];
        if (i % 256 == 0) { /* scales and minima of the next 256 values, by 16 values */
            columns(unpacked.s + i / 16, k / 16, count, (k - i) / 16, scales);
            if (has_min)
                columns(unpacked.m + i / 16, k / 16, count, (k - i) / 16, minima);
        }
        for (size_t r = 0; r < 16; r++)
            v[r] = r < count ? _mm512_maskz_loadu_epi8(some, unpacked.q + r * k + i)
                             : _mm512_setzero_si512();
        transpose(v);
        for (size_t g = i / G; g < (i + values) / G; g++) {
            __m512i *to = panel + place_of(g, groups) * stride, sum = _mm512_setzero_si512();
            const __m512i *from = v + (g * G - i) / 4;
            for (size_t t = 0; t < G / 4; t++) {
                sum = dot4(sum, _mm512_set1_epi8((char)0x80), from[t]);
                to[PANEL_VALUES + t] = from[t];
            }
            to[PANEL_CORRECTION] = _mm512_sub_epi32(_mm512_setzero_si512(), sum);
            to[PANEL_SCALE] = scales[g * G / 16 % 16];
            if (has_min)
                to[PANEL_MINIMUM] = minima[g * G / 16 % 16];
        }
    }
}

void bz_pack_avx512(bz_type type, const uint8_t *blocks, size_t count, size_t k, bz_w8 unpacked,
                    void *panels)
{
    const size_t G = bz_product_group(type), row_bytes = bz_row_bytes(type, k);
    for (size_t p = 0; p < 2; p++) {
        const size_t first = 16 * p, n = count <= first       ? 0
                                         : count - first < 16 ? count - first
                                                              : 16;
        __m512i *panel = (__m512i *)panels + p * group_vectors(G);
        if (G == 16)
            pack_panel(type, 16, blocks + first * row_bytes, n, k, unpacked, panel,
                       2 * group_vectors(16));
        else
            pack_panel(type, 32, blocks + first * row_bytes, n, k, unpacked, panel,
                       2 * group_vectors(32));
    }
}

INLINE __m512i four_values(const uint8_t *p)
{
    int32_t v;
    memcpy(&v, p, sizeof v);
    return _mm512_set1_epi32(v);
}

INLINE void multiply_rows(const size_t R, const size_t G, const bool has_min, const __m512i *panels,
                          size_t count, const void *block, size_t k, float *out, size_t stride)
{
    enum { B = BZ_BLOCK_ROWS };
    const size_t groups = k / G, V = group_vectors(G);
    const bz_product_block in = bz_product_block_at(block, k);
    const float *d = in.d, *sums = G == 16 ? in.sum16 : in.sum32;
    __m512 total[B][2];
    for (size_t r = 0; r < R; r++)
        total[r][0] = total[r][1] = _mm512_setzero_ps();
    for (size_t j = 0; j < L && j < groups; j++) {
        __m512 a[B][2];
        for (size_t r = 0; r < R; r++)
            a[r][0] = a[r][1] = _mm512_setzero_ps();
        for (size_t g = j; g < groups; g += L, panels += 2 * V) {
            const uint8_t *x = in.q + g * G * B;
            __m512i p[B][2];
            for (size_t r = 0; r < R; r++) {
                p[r][0] = panels[PANEL_CORRECTION];
                p[r][1] = panels[V + PANEL_CORRECTION];
            }
            for (size_t t = 0; t < G / 4; t++, x += 4 * B) {
                const __m512i w0 = panels[PANEL_VALUES + t], w1 = panels[V + PANEL_VALUES + t];
                for (size_t r = 0; r < R; r++) {
                    const __m512i v = four_values(x + 4 * r);
                    p[r][0] = dot4(p[r][0], v, w0);
                    p[r][1] = dot4(p[r][1], v, w1);
                }
            }
            for (size_t c = 0; c < 2; c++) {
                const __m512 s = _mm512_castsi512_ps(panels[c * V + PANEL_SCALE]),
                             m = _mm512_castsi512_ps(panels[c * V + PANEL_MINIMUM]);
                for (size_t r = 0; r < R; r++) {
                    const __m512 scale = _mm512_mul_ps(s, _mm512_set1_ps(d[g * G / 32 * B + r]));
                    a[r][c] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(p[r][c]), scale, a[r][c]);
                    if (has_min)
                        a[r][c] = _mm512_fnmadd_ps(m, _mm512_set1_ps(sums[g * B + r]), a[r][c]);
                }
            }
        }
        for (size_t r = 0; r < R; r++)
            for (size_t c = 0; c < 2; c++)
                total[r][c] = _mm512_add_ps(total[r][c], a[r][c]);
    }
    const __mmask16 first = (__mmask16)(count < 16 ? (1u << count) - 1 : 0xFFFF),
                    second = (__mmask16)(count > 16 ? (1u << (count - 16)) - 1 : 0);
    for (size_t r = 0; r < R; r++) {
        _mm512_mask_storeu_ps(out + r * stride, first, total[r][0]);
        _mm512_mask_storeu_ps(out + r * stride + 16, second, total[r][1]);
    }
}

#define MULTIPLY(name, G, has_min)                                                                 \
    static void multiply_##name(const __m512i *panels, size_t count, const void *block,            \
                                size_t rows, size_t k, float *out, size_t stride)                  \
    {                                                                                              \
        switch (rows) {                                                                            \
        case 1: multiply_rows(1, G, has_min, panels, count, block, k, out, stride); return;        \
        case 2: multiply_rows(2, G, has_min, panels, count, block, k, out, stride); return;        \
        case 3: multiply_rows(3, G, has_min, panels, count, block, k, out, stride); return;        \
        case 4: multiply_rows(4, G, has_min, panels, count, block, k, out, stride); return;        \
        case 5: multiply_rows(5, G, has_min, panels, count, block, k, out, stride); return;        \
        default: multiply_rows(6, G, has_min, panels, count, block, k, out, stride);               \
        }                                                                                          \
    }
MULTIPLY(32, 32, false)
MULTIPLY(32_min, 32, true)
MULTIPLY(16, 16, false)
MULTIPLY(16_min, 16, true)

static void multiply(bz_type type, const void *panels, size_t count, const void *block, size_t rows,
                     size_t k, float *out, size_t stride)
{
    const bool has_min = bz_type_has_min(type);
    if (bz_product_group(type) == 16)
        (has_min ? multiply_16_min : multiply_16)(panels, count, block, rows, k, out, stride);
    else
        (has_min ? multiply_32_min : multiply_32)(panels, count, block, rows, k, out, stride);
}

const bz_products bz_products_avx512 = {.lanes = L,
                                        .rows = bz_rows_avx512,
                                        .row_bytes = bz_row_bytes_avx512,
                                        .arrange_row = bz_arrange_row_avx512,
                                        .pack = bz_pack_avx512,
                                        .panel_bytes = bz_panel_bytes_avx512,
                                        .block_rows = BZ_BLOCK_ROWS,
                                        .block_bytes = bz_product_block_bytes,
                                        .arrange_in_block = bz_product_arrange_plus_128,
                                        .multiply = multiply};

#else
typedef int bz_no_avx512; /* ISO C requires a declaration */
#endif
