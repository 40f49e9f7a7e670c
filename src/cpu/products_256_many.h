/* Part of products_256.h: many activation rows in blocks, by packed panels of weights. */

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
