/* Part of products_256.h: a few activation rows, by blocks as they lie in the file. */

/* ---- activation rows ---- */

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
