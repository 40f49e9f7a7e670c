/* Integer products for vectors of 128 bits (products.h): WebAssembly, and ARM with dot products.
 * Both have 4 lanes, and no fused multiply-add: products and sums are rounded one by one.
 *
 * All types are multiplied from their unpacked form. A lane of a vector is a weight row: one
 * activation row takes four of them at a time, several share panels of eight. */
#if defined(__wasm_simd128__) || defined(__ARM_FEATURE_DOTPROD)

#include "cpu/products_128.h"

#ifdef __wasm_simd128__
#include <wasm_simd128.h>
#define KERNELS bz_kernels_wasm
#define TABLE   bz_products_wasm
#else
#include <arm_neon.h>
#define KERNELS bz_kernels_neon
#define TABLE   bz_products_dotprod
#endif

/* ---- the instructions ----
 *
 * values: 4 values of each of 4 weight rows, as panels hold them. four: 4 values of an activation
 * row. row_sums: exact products of 4 weight rows with one activation row, before they are complete.
 */

#ifdef __wasm_simd128__

enum { MULTIPLY_ROWS = 2 /* whose sums fit the registers */ };

/* 16-bit numbers, because the only integer product takes those. */
typedef struct values {
    v128_t rows01, rows23;
} values;
typedef v128_t four;
/* rows01: lanes 0, 1 are parts of row 0, lanes 2, 3 of row 1. */
typedef struct row_sums {
    v128_t rows01, rows23;
} row_sums;

INLINE row_sums no_sums(void)
{
    return (row_sums){wasm_i32x4_splat(0), wasm_i32x4_splat(0)};
}

/* Row r's values: bytes 4r .. 4r + 3. */
INLINE values values_of(const int8_t bytes[16])
{
    const v128_t v = wasm_v128_load(bytes);
    return (values){wasm_i16x8_extend_low_i8x16(v), wasm_i16x8_extend_high_i8x16(v)};
}

INLINE four load_four(const uint8_t *x)
{
    return wasm_i16x8_extend_low_i8x16(wasm_v128_load32_splat(x));
}

INLINE void add_products(row_sums *s, const values *w, four x)
{
    s->rows01 = wasm_i32x4_add(s->rows01, wasm_i32x4_dot_i16x8(w->rows01, x));
    s->rows23 = wasm_i32x4_add(s->rows23, wasm_i32x4_dot_i16x8(w->rows23, x));
}

INLINE i32x4 complete(row_sums s)
{
    return (i32x4)wasm_i32x4_add(wasm_i32x4_shuffle(s.rows01, s.rows23, 0, 2, 4, 6),
                                 wasm_i32x4_shuffle(s.rows01, s.rows23, 1, 3, 5, 7));
}

/* 16 values of an activation row. */
typedef struct sixteen {
    v128_t low, high;
} sixteen;

INLINE sixteen load_sixteen(const int8_t *q)
{
    const v128_t v = wasm_v128_load(q);
    return (sixteen){wasm_i16x8_extend_low_i8x16(v), wasm_i16x8_extend_high_i8x16(v)};
}

/* sum + products of 16 values, in four parts. */
INLINE i32x4 add_sixteen(i32x4 sum, const int8_t *w, const sixteen *x)
{
    const v128_t v = wasm_v128_load(w);
    const v128_t low = wasm_i32x4_dot_i16x8(wasm_i16x8_extend_low_i8x16(v), x->low),
                 high = wasm_i32x4_dot_i16x8(wasm_i16x8_extend_high_i8x16(v), x->high);
    return sum + (i32x4)wasm_i32x4_add(low, high);
}

INLINE f32x4 to_float(i32x4 v)
{
    return (f32x4)wasm_f32x4_convert_i32x4((v128_t)v);
}

#else

enum { MULTIPLY_ROWS = 6 };

typedef int8x16_t values;
typedef int8x16_t four;
typedef int32x4_t row_sums;

INLINE row_sums no_sums(void)
{
    return vdupq_n_s32(0);
}

INLINE values values_of(const int8_t bytes[16])
{
    return vld1q_s8(bytes);
}

INLINE four load_four(const uint8_t *x)
{
    int32_t v;
    memcpy(&v, x, sizeof v);
    return vreinterpretq_s8_s32(vdupq_n_s32(v));
}

INLINE void add_products(row_sums *s, const values *w, four x)
{
    *s = vdotq_s32(*s, *w, x);
}

INLINE i32x4 complete(row_sums s)
{
    return (i32x4)s;
}

typedef int8x16_t sixteen;

INLINE sixteen load_sixteen(const int8_t *q)
{
    return vld1q_s8(q);
}

INLINE i32x4 add_sixteen(i32x4 sum, const int8_t *w, const sixteen *x)
{
    return (i32x4)vdotq_s32((int32x4_t)sum, vld1q_s8(w), *x);
}

INLINE f32x4 to_float(i32x4 v)
{
    return (f32x4)vcvtq_f32_s32((int32x4_t)v);
}

#endif

/* a + 4 products, one for each weight row: exact products p, scales s and d. */
INLINE f32x4 add_group(f32x4 a, i32x4 p, f32x4 s, float d)
{
    return a + to_float(p) * (s * splat(d));
}

/* ---- one activation row ---- */

/* Lane r: the sum of the four lanes of v[r]. */
INLINE i32x4 fold(const i32x4 v[QUAD])
{
    const i32x4 a = __builtin_shufflevector(v[0], v[1], 0, 4, 1, 5) +
                    __builtin_shufflevector(v[0], v[1], 2, 6, 3, 7),
                b = __builtin_shufflevector(v[2], v[3], 0, 4, 1, 5) +
                    __builtin_shufflevector(v[2], v[3], 2, 6, 3, 7);
    return __builtin_shufflevector(a, b, 0, 1, 4, 5) + __builtin_shufflevector(a, b, 2, 3, 6, 7);
}

/* out[0..4) of four unpacked weight rows. */
INLINE f32x4 quad_times_row(const form f, bz_w8 w, const bz_q8 *x, const float *sums32, size_t k)
{
    const size_t groups = k / f.G, stride = k / 16;
    const float *sums = f.G == 16 ? x->sum : sums32;
    f32x4 a[L] = {splat(0), splat(0), splat(0), splat(0)}, total = splat(0);
    for (size_t g = 0; g < groups; g += L)
        for (size_t j = 0; j < L && g + j < groups; j++) {
            const size_t at = (g + j) * f.G;
            i32x4 p[QUAD] = {{0}, {0}, {0}, {0}};
            for (size_t i = 0; i < f.G; i += 16) {
                const sixteen v = load_sixteen(x->q + at + i);
                for (size_t r = 0; r < QUAD; r++)
                    p[r] = add_sixteen(p[r], w.q + r * k + at + i, &v);
            }
            a[j] = add_group(a[j], fold(p), column(w.s + at / 16, stride), x->d[at / 32]);
            if (f.has_min)
                a[j] -= column(w.m + at / 16, stride) * splat(sums[g + j]);
        }
    for (size_t j = 0; j < L; j++)
        total += a[j];
    return total;
}

INLINE void rows_of(const form f, bz_type type, const uint8_t *blocks, size_t count,
                    uint8_t *memory, size_t n, size_t k, float *out, size_t stride)
{
    const size_t row_bytes = bz_row_bytes(type, k);
    const bz_w8 w = unpacked_rows(memory, k);
    for (size_t r = 0; r < count; r += QUAD) {
        const size_t some = count - r < QUAD ? count - r : QUAD;
        for (size_t i = 0; i < QUAD; i++) /* rows that are missing repeat the last one */
            KERNELS.unpack(type, blocks + (r + (i < some ? i : some - 1)) * row_bytes,
                           bz_w8_at(w, i * k), k);
        for (size_t i = 0; i < n; i++) {
            const few_row *row = (const few_row *)(const void *)(memory + i * arranged_bytes(k));
            const f32x4 results = quad_times_row(f, w, &row->x, row->sums32, k);
            memcpy(out + i * stride + r, &results, some * sizeof *out);
        }
    }
}

static void rows(bz_type type, const uint8_t *blocks, size_t count, void *memory, size_t n,
                 size_t k, float *out, size_t stride)
{
    BY_FORM(type, rows_of(f, type, blocks, count, memory, n, k, out, stride));
}

/* ---- several activation rows ----
 *
 * Panels hold eight weight rows group by group, in the order in which their products are added: for
 * each quad of rows its scales, its minima, then G / 4 values. */

typedef struct group_head {
    f32x4 s, m;
} group_head;

static size_t quad_bytes(size_t G)
{
    return sizeof(group_head) + G / 4 * sizeof(values);
}

static size_t pair_bytes(size_t G, size_t k)
{
    return k / G * 2 * quad_bytes(G);
}

static size_t panel_bytes(size_t k)
{
    return BZ_PRODUCT_TILE / PAIR *
           (pair_bytes(16, k) > pair_bytes(32, k) ? pair_bytes(16, k) : pair_bytes(32, k));
}

/* One quad of `count` <= 4 rows; missing rows are zeros. */
INLINE void pack_quad(const form f, bz_type type, const uint8_t *blocks, size_t count, size_t k,
                      bz_w8 w, uint8_t *panel)
{
    const size_t groups = k / f.G, row_bytes = bz_row_bytes(type, k), stride = k / 16;
    for (size_t r = 0; r < QUAD; r++) {
        const bz_w8 row = bz_w8_at(w, r * k);
        if (r < count) {
            KERNELS.unpack(type, blocks + r * row_bytes, row, k);
            continue;
        }
        memset(row.q, 0, k);
        memset(row.s, 0, stride * sizeof *row.s);
        memset(row.m, 0, stride * sizeof *row.m);
    }
    for (size_t g = 0; g < groups; g++) {
        const size_t at = g * f.G;
        uint8_t *to = panel + place_of(g, groups) * 2 * quad_bytes(f.G);
        const group_head head = {column(w.s + at / 16, stride),
                                 f.has_min ? column(w.m + at / 16, stride) : splat(0)};
        memcpy(to, &head, sizeof head);
        to += sizeof head;
        for (size_t i = at; i < at + f.G; i += 4, to += sizeof(values)) {
            int8_t bytes[4 * QUAD];
            for (size_t r = 0; r < QUAD; r++)
                memcpy(bytes + 4 * r, w.q + r * k + i, 4);
            const values v = values_of(bytes);
            memcpy(to, &v, sizeof v);
        }
    }
}

static void pack(bz_type type, const uint8_t *blocks, size_t count, size_t k, bz_w8 unpacked,
                 void *panels)
{
    const size_t G = bz_product_group(type), row_bytes = bz_row_bytes(type, k);
    for (size_t first = 0; first < BZ_PRODUCT_TILE && first < (count + PAIR - 1) / PAIR * PAIR;
         first += QUAD) {
        const size_t some = count <= first ? 0 : count - first < QUAD ? count - first : QUAD;
        uint8_t *panel =
            (uint8_t *)panels + first / PAIR * pair_bytes(G, k) + first / QUAD % 2 * quad_bytes(G);
        BY_FORM(type, pack_quad(f, type, blocks + first * row_bytes, some, k, unpacked, panel));
    }
}

/* Eight weight rows by R rows of the block from row `row` on. */
INLINE void multiply_pair(const size_t R, const form f, const uint8_t *panel, size_t count,
                          const bz_product_block *x, size_t row, size_t k, float *out,
                          size_t stride)
{
    enum { B = BZ_BLOCK_ROWS };
    const size_t groups = k / f.G, bytes = quad_bytes(f.G);
    const float *scaled = (f.G == 16 ? x->sum16 : x->sum32) + row, *d = x->d + row;
    f32x4 total[B][2];
    for (size_t r = 0; r < R; r++)
        total[r][0] = total[r][1] = splat(0);
    for (size_t j = 0; j < L && j < groups; j++) {
        f32x4 a[B][2];
        for (size_t r = 0; r < R; r++)
            a[r][0] = a[r][1] = splat(0);
        for (size_t g = j; g < groups; g += L, panel += 2 * bytes) {
            const group_head *head0 = (const void *)panel, *head1 = (const void *)(panel + bytes);
            const values *w0 = (const void *)(head0 + 1), *w1 = (const void *)(head1 + 1);
            const uint8_t *q = x->q + g * f.G * B + 4 * row;
            row_sums p[B][2];
            for (size_t r = 0; r < R; r++)
                p[r][0] = p[r][1] = no_sums();
            for (size_t t = 0; t < f.G / 4; t++, q += 4 * B)
                for (size_t r = 0; r < R; r++) {
                    const four v = load_four(q + 4 * r);
                    add_products(&p[r][0], w0 + t, v);
                    add_products(&p[r][1], w1 + t, v);
                }
            for (size_t r = 0; r < R; r++) {
                const float scale = d[g * f.G / 32 * B + r];
                a[r][0] = add_group(a[r][0], complete(p[r][0]), head0->s, scale);
                a[r][1] = add_group(a[r][1], complete(p[r][1]), head1->s, scale);
                if (f.has_min) {
                    const f32x4 sum = splat(scaled[g * B + r]);
                    a[r][0] -= head0->m * sum;
                    a[r][1] -= head1->m * sum;
                }
            }
        }
        for (size_t r = 0; r < R; r++) {
            total[r][0] += a[r][0];
            total[r][1] += a[r][1];
        }
    }
    for (size_t r = 0; r < R; r++)
        memcpy(out + (row + r) * stride, total[r],
               (count < PAIR ? count : (size_t)PAIR) * sizeof *out);
}

INLINE void multiply_form(const form f, const uint8_t *panels, size_t count, const void *block,
                          size_t rows, size_t k, float *out, size_t stride)
{
    const bz_product_block x = bz_product_block_at(block, k);
    for (size_t c = 0; c < count; c += PAIR, panels += pair_bytes(f.G, k)) {
        size_t row = 0;
        for (; row + MULTIPLY_ROWS <= rows; row += MULTIPLY_ROWS)
            multiply_pair(MULTIPLY_ROWS, f, panels, count - c, &x, row, k, out + c, stride);
        for (; row < rows; row++)
            multiply_pair(1, f, panels, count - c, &x, row, k, out + c, stride);
    }
}

static void multiply(bz_type type, const void *panels, size_t count, const void *block, size_t rows,
                     size_t k, float *out, size_t stride)
{
    BY_FORM(type, multiply_form(f, panels, count, block, rows, k, out, stride));
}

const bz_products TABLE = {.lanes = L,
                           .rows = rows,
                           .row_bytes = arranged_bytes,
                           .arrange_row = arrange_row,
                           .pack = pack,
                           .panel_bytes = panel_bytes,
                           .block_rows = BZ_BLOCK_ROWS,
                           .block_bytes = bz_product_block_bytes,
                           .arrange_in_block = bz_product_arrange,
                           .multiply = multiply};

#else
typedef int bz_no_128_products; /* ISO C requires a declaration */
#endif
