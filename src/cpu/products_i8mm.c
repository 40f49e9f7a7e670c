/* Integer products for ARM processors that multiply matrices of int8 (FEAT_I8MM): 4 lanes, with the
 * bits of products_128.c.
 *
 * smmla multiplies two rows of eight values by two rows of eight values and adds the four sums to a
 * vector. A vector holds what two activation rows a, b and two weight rows 0, 1 give: a0, a1, b0,
 * b1. One activation row is multiplied as with dot products, where no half of a result is wasted.
 */
#if defined(__ARM_FEATURE_MATMUL_INT8)

#include <arm_neon.h>

#include "cpu/products_128.h"

enum { TWOS = PAIR / 2 /* pairs of weight rows of a panel */ };

/* Values 0 .. 7 and 8 .. 15 of two rows. */
typedef struct two_rows {
    int8x16_t low, high;
} two_rows;

INLINE two_rows load_two_rows(const int8_t *a, const int8_t *b)
{
    const int64x2_t first = vreinterpretq_s64_s8(vld1q_s8(a)),
                    second = vreinterpretq_s64_s8(vld1q_s8(b));
    return (two_rows){vreinterpretq_s8_s64(vzip1q_s64(first, second)),
                      vreinterpretq_s8_s64(vzip2q_s64(first, second))};
}

/* A number of each of two activation rows, by lane. */
INLINE f32x4 by_activation(float a, float b)
{
    return (f32x4){a, a, b, b};
}

INLINE f32x4 load_by_activation(const float two[2])
{
    const float32x4_t v = vcombine_f32(vld1_f32(two), vdup_n_f32(0));
    return (f32x4)vzip1q_f32(v, v);
}

/* A number of each of two weight rows, by lane. two: aligned to 8 bytes. */
INLINE f32x4 load_by_weight(const float two[2])
{
    return (f32x4)vld1q_dup_f64((const void *)two);
}

/* The same of the first and the last two of four rows. */
INLINE f32x4 firsts(f32x4 v)
{
    return __builtin_shufflevector(v, v, 0, 1, 0, 1);
}

INLINE f32x4 seconds(f32x4 v)
{
    return __builtin_shufflevector(v, v, 2, 3, 2, 3);
}

/* a + products: exact ones p, scales s and d. */
INLINE f32x4 add_group(f32x4 a, int32x4_t p, f32x4 s, f32x4 d)
{
    return a + (f32x4)vcvtq_f32_s32(p) * (s * d);
}

/* ---- few activation rows ---- */

/* out[r * stride + c] of `count` <= 4 unpacked weight rows c and n <= 2 P activation rows. An odd
 * last row is multiplied twice. */
INLINE void quad_times_rows(const size_t P, const form f, bz_w8 w, const uint8_t *memory, size_t n,
                            size_t k, size_t count, float *out, size_t stride)
{
    enum { MAX_PAIRS = BZ_FEW_ROWS / 2 };
    const size_t groups = k / f.G;
    const few_row *row[MAX_PAIRS][2];
    const float *sums[MAX_PAIRS][2];
    f32x4 total[MAX_PAIRS][2];
    for (size_t p = 0; p < P; p++)
        for (size_t i = 0; i < 2; i++) {
            const size_t r = 2 * p + i < n ? 2 * p + i : n - 1;
            row[p][i] = (const few_row *)(const void *)(memory + r * arranged_bytes(k));
            sums[p][i] = f.G == 16 ? row[p][i]->x.sum : row[p][i]->sums32;
            total[p][i] = splat(0);
        }
    for (size_t j = 0; j < L && j < groups; j++) {
        f32x4 a[MAX_PAIRS][2];
        for (size_t p = 0; p < P; p++)
            a[p][0] = a[p][1] = splat(0);
        for (size_t g = j; g < groups; g += L) {
            int32x4_t products[MAX_PAIRS][2];
            for (size_t p = 0; p < P; p++)
                products[p][0] = products[p][1] = vdupq_n_s32(0);
            for (size_t at = g * f.G; at < g * f.G + f.G; at += 16) {
                const two_rows w01 = load_two_rows(w.q + at, w.q + k + at),
                               w23 = load_two_rows(w.q + 2 * k + at, w.q + 3 * k + at);
                for (size_t p = 0; p < P; p++) {
                    const two_rows x = load_two_rows(row[p][0]->x.q + at, row[p][1]->x.q + at);
                    int32x4_t *to = products[p];
                    to[0] = vmmlaq_s32(vmmlaq_s32(to[0], x.low, w01.low), x.high, w01.high);
                    to[1] = vmmlaq_s32(vmmlaq_s32(to[1], x.low, w23.low), x.high, w23.high);
                }
            }
            const f32x4 s = column(w.s + g * f.G / 16, k / 16);
            for (size_t p = 0; p < P; p++) {
                const f32x4 d =
                    by_activation(row[p][0]->x.d[g * f.G / 32], row[p][1]->x.d[g * f.G / 32]);
                a[p][0] = add_group(a[p][0], products[p][0], firsts(s), d);
                a[p][1] = add_group(a[p][1], products[p][1], seconds(s), d);
            }
            if (f.has_min) {
                const f32x4 m = column(w.m + g * f.G / 16, k / 16);
                for (size_t p = 0; p < P; p++) {
                    const f32x4 sum = by_activation(sums[p][0][g], sums[p][1][g]);
                    a[p][0] -= firsts(m) * sum;
                    a[p][1] -= seconds(m) * sum;
                }
            }
        }
        for (size_t p = 0; p < P; p++) {
            total[p][0] += a[p][0];
            total[p][1] += a[p][1];
        }
    }
    for (size_t r = 0; r < n; r++) {
        const f32x4 *t = total[r / 2];
        const f32x4 results = r % 2 ? __builtin_shufflevector(t[0], t[1], 2, 3, 6, 7)
                                    : __builtin_shufflevector(t[0], t[1], 0, 1, 4, 5);
        memcpy(out + r * stride, &results, count * sizeof *out);
    }
}

INLINE void rows_of(const form f, bz_type type, const uint8_t *blocks, size_t count,
                    uint8_t *memory, size_t n, size_t k, float *out, size_t stride)
{
    const size_t row_bytes = bz_row_bytes(type, k);
    const bz_w8 w = unpacked_rows(memory, k);
    for (size_t c = 0; c < count; c += QUAD, out += QUAD) {
        const size_t some = count - c < QUAD ? count - c : QUAD;
        for (size_t i = 0; i < QUAD; i++) /* rows that are missing repeat the last one */
            bz_kernels_neon.unpack(type, blocks + (c + (i < some ? i : some - 1)) * row_bytes,
                                   bz_w8_at(w, i * k), k);
        switch ((n + 1) / 2) {
        case 1: quad_times_rows(1, f, w, memory, n, k, some, out, stride); break;
        case 2: quad_times_rows(2, f, w, memory, n, k, some, out, stride); break;
        case 3: quad_times_rows(3, f, w, memory, n, k, some, out, stride); break;
        default: quad_times_rows(4, f, w, memory, n, k, some, out, stride);
        }
    }
}

static void rows(bz_type type, const uint8_t *blocks, size_t count, void *memory, size_t n,
                 size_t k, float *out, size_t stride)
{
    if (n == 1)
        bz_products_dotprod.rows(type, blocks, count, memory, n, k, out, stride);
    else
        BY_FORM(type, rows_of(f, type, blocks, count, memory, n, k, out, stride));
}

/* ---- many activation rows ----
 *
 * Panels hold eight weight rows group by group, in the order in which their products are added:
 * their scales, their minima, then by eight values four pairs of rows. */

static size_t group_bytes(size_t G)
{
    return 2 * PAIR * sizeof(float) + G * PAIR;
}

static size_t panel_bytes(size_t k)
{
    return BZ_PRODUCT_TILE / PAIR * (k / 16 * group_bytes(16)); /* the most: groups of 16 */
}

/* One panel of `count` <= 8 rows; missing rows are zeros. */
INLINE void pack_panel(const form f, bz_type type, const uint8_t *blocks, size_t count, size_t k,
                       bz_w8 w, uint8_t *panel)
{
    const size_t groups = k / f.G, row_bytes = bz_row_bytes(type, k), stride = k / 16;
    for (size_t r = 0; r < PAIR; r++) {
        const bz_w8 row = bz_w8_at(w, r * k);
        if (r < count) {
            bz_kernels_neon.unpack(type, blocks + r * row_bytes, row, k);
            continue;
        }
        memset(row.q, 0, k);
        memset(row.s, 0, stride * sizeof *row.s);
        memset(row.m, 0, stride * sizeof *row.m);
    }
    for (size_t g = 0; g < groups; g++) {
        uint8_t *group = panel + place_of(g, groups) * group_bytes(f.G);
        f32x4 *head = (f32x4 *)(void *)group;
        int8_t *values = (int8_t *)(head + 4);
        for (size_t quad = 0; quad < 2; quad++) {
            const size_t at = quad * QUAD * stride + g * f.G / 16;
            head[quad] = column(w.s + at, stride);
            head[2 + quad] = f.has_min ? column(w.m + at, stride) : splat(0);
        }
        for (size_t i = g * f.G; i < g * f.G + f.G; i += 16, values += 16 * PAIR)
            for (size_t two = 0; two < TWOS; two++) {
                const int8_t *from = w.q + 2 * two * k + i;
                const two_rows v = load_two_rows(from, from + k);
                vst1q_s8(values + 16 * two, v.low);
                vst1q_s8(values + 8 * PAIR + 16 * two, v.high);
            }
    }
}

static void pack(bz_type type, const uint8_t *blocks, size_t count, size_t k, bz_w8 unpacked,
                 void *panels)
{
    const size_t row_bytes = bz_row_bytes(type, k), G = bz_product_group(type);
    uint8_t *panel = panels;
    for (size_t first = 0; first < count; first += PAIR, panel += k / G * group_bytes(G)) {
        const size_t some = count - first < PAIR ? count - first : (size_t)PAIR;
        BY_FORM(type, pack_panel(f, type, blocks + first * row_bytes, some, k, unpacked, panel));
    }
}

/* A panel by the activation rows of P pairs, from row `row` of the block on, of which n are wanted.
 * Rows of the block after its last are multiplied as they are, and not stored. */
INLINE void multiply_pairs(const size_t P, const form f, const uint8_t *panel, size_t count,
                           const bz_product_block *x, size_t row, size_t n, size_t k, float *out,
                           size_t stride)
{
    enum { B = BZ_BLOCK_ROWS };
    const size_t groups = k / f.G;
    const float *sums = (f.G == 16 ? x->sum16 : x->sum32) + row, *d = x->d + row;
    f32x4 total[B / 2][TWOS];
    for (size_t p = 0; p < P; p++)
        for (size_t c = 0; c < TWOS; c++)
            total[p][c] = splat(0);
    for (size_t j = 0; j < L && j < groups; j++) {
        f32x4 a[B / 2][TWOS];
        for (size_t p = 0; p < P; p++)
            for (size_t c = 0; c < TWOS; c++)
                a[p][c] = splat(0);
        for (size_t g = j; g < groups; g += L, panel += group_bytes(f.G)) {
            const float *head = (const void *)panel;
            const int8_t *w = (const int8_t *)(head + 2 * PAIR),
                         *q = (const int8_t *)x->q + g * f.G * B + 8 * row;
            int32x4_t products[B / 2][TWOS];
            for (size_t p = 0; p < P; p++)
                for (size_t c = 0; c < TWOS; c++)
                    products[p][c] = vdupq_n_s32(0);
            for (size_t t = 0; t < f.G / 8; t++, w += 8 * PAIR, q += 8 * B)
                for (size_t p = 0; p < P; p++) {
                    const int8x16_t v = vld1q_s8(q + 16 * p);
                    for (size_t c = 0; c < TWOS; c++)
                        products[p][c] = vmmlaq_s32(products[p][c], v, vld1q_s8(w + 16 * c));
                }
            f32x4 by_row[B / 2];
            for (size_t p = 0; p < P; p++)
                by_row[p] = load_by_activation(d + g * f.G / 32 * B + 2 * p);
            for (size_t c = 0; c < TWOS; c++) {
                const f32x4 s = load_by_weight(head + 2 * c);
                for (size_t p = 0; p < P; p++)
                    a[p][c] = add_group(a[p][c], products[p][c], s, by_row[p]);
            }
            if (!f.has_min)
                continue;
            for (size_t p = 0; p < P; p++)
                by_row[p] = load_by_activation(sums + g * B + 2 * p);
            for (size_t c = 0; c < TWOS; c++) {
                const f32x4 m = load_by_weight(head + PAIR + 2 * c);
                for (size_t p = 0; p < P; p++)
                    a[p][c] -= m * by_row[p];
            }
        }
        for (size_t p = 0; p < P; p++)
            for (size_t c = 0; c < TWOS; c++)
                total[p][c] += a[p][c];
    }
    for (size_t r = 0; r < n; r++) {
        const f32x4 *t = total[r / 2];
        f32x4 results[2];
        for (size_t i = 0; i < 2; i++)
            results[i] = r % 2 ? __builtin_shufflevector(t[2 * i], t[2 * i + 1], 2, 3, 6, 7)
                               : __builtin_shufflevector(t[2 * i], t[2 * i + 1], 0, 1, 4, 5);
        memcpy(out + (row + r) * stride, results,
               (count < PAIR ? count : (size_t)PAIR) * sizeof *out);
    }
}

INLINE void multiply_form(const form f, const uint8_t *panels, size_t count, const void *block,
                          size_t rows, size_t k, float *out, size_t stride)
{
    enum { P = BZ_BLOCK_ROWS / 2 /* pairs whose sums fit the registers */ };
    const bz_product_block x = bz_product_block_at(block, k);
    for (size_t c = 0; c < count; c += PAIR, panels += k / f.G * group_bytes(f.G)) {
        if (rows > 2 * P - 2) {
            multiply_pairs(P, f, panels, count - c, &x, 0, rows, k, out + c, stride);
            continue;
        }
        for (size_t r = 0; r < rows; r += 2)
            multiply_pairs(1, f, panels, count - c, &x, r, rows - r < 2 ? 1 : 2, k, out + c,
                           stride);
    }
}

static void multiply(bz_type type, const void *panels, size_t count, const void *block, size_t rows,
                     size_t k, float *out, size_t stride)
{
    BY_FORM(type, multiply_form(f, panels, count, block, rows, k, out, stride));
}

const bz_products bz_products_i8mm = {.lanes = L,
                                      .rows = rows,
                                      .row_bytes = arranged_bytes,
                                      .arrange_row = arrange_row,
                                      .pack = pack,
                                      .panel_bytes = panel_bytes,
                                      .block_rows = BZ_BLOCK_ROWS,
                                      .block_bytes = bz_product_block_bytes,
                                      .arrange_in_block = bz_product_arrange_eights,
                                      .multiply = multiply};

#else
typedef int bz_no_i8mm_products; /* ISO C requires a declaration */
#endif
