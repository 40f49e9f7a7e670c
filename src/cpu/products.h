/* Integer matrix products: int8 activations by blocks of weights, straight from the file.
 *
 * A row of K values is K / G groups of G: 16 for types with a scale per 16 values, else 32. A
 * group's products are summed in integers, exactly. Then there is one order of f32 additions, which
 * depends on K and the table only (L = `lanes`):
 *
 *   a_j = sum over the groups g = j, j + L, j + 2L, ... in turn, each by a fused multiply-add
 *         where the instructions have one:
 *         a_j += products_g * (s_g * d_g), then a_j -= m_g * (d_g * sum of the group's q)
 *   out = ((a_0 + a_1) + ...) + a_(L-1)
 *
 * For few activation rows (`rows`) a vector holds the sums a_j of one weight row and one activation
 * row. Weights are not stored anywhere: what a step unpacks serves several activation rows while it
 * is in registers. With 128 bits a vector holds one a_j of four unpacked weight rows. For many
 * activation rows a vector holds one a_j of L weight rows, which are packed side by side (`pack`),
 * and several activation rows share each load (`multiply`). Both give the same bits. */
#ifndef BZ_CPU_PRODUCTS_H
#define BZ_CPU_PRODUCTS_H

#include "cpu/kernels.h"

enum {
    BZ_FEW_ROWS = 8,   /* activation rows up to which `rows` is faster than `multiply` */
    BZ_BLOCK_ROWS = 6, /* activation rows of a bz_product_block */
    BZ_MOST_BLOCK_ROWS = 16,
    BZ_PRODUCT_TILE = 32 /* weight rows that pack puts side by side */
};

struct bz_products {
    uint32_t lanes;

    /* arrange_row: a row of activations as `rows` reads it with weights of that type, in
     * row_bytes(k) bytes, which also have room for what `rows` unpacks. memory: n <= BZ_FEW_ROWS
     * such rows one after another, aligned to 64. rows: out[r * stride + c] = weight row c times
     * row r, c < count. */
    void (*arrange_row)(bz_type type, const bz_q8 *x, size_t k, void *row);
    void (*rows)(bz_type type, const uint8_t *blocks, size_t count, void *memory, size_t n,
                 size_t k, float *out, size_t stride);
    size_t (*row_bytes)(size_t k); /* a multiple of 64 */

    /* Puts `count` <= BZ_PRODUCT_TILE weight rows side by side. panels: panel_bytes(k) bytes,
     * aligned to 64; unpacked: room for 16 unpacked rows. */
    void (*pack)(bz_type type, const uint8_t *blocks, size_t count, size_t k, bz_w8 unpacked,
                 void *panels);
    size_t (*panel_bytes)(size_t k);

    /* Blocks of activations: block_rows <= BZ_MOST_BLOCK_ROWS rows side by side in block_bytes(k)
     * bytes, aligned to 4. */
    size_t block_rows;
    size_t (*block_bytes)(size_t k);
    /* Row `slot` of a block from the int8 form of a row. */
    void (*arrange_in_block)(const bz_q8 *x, size_t k, size_t slot, void *block);
    /* out[r * stride + c] for `rows` <= block_rows rows of a block of activations and the `count`
     * weight rows of panels. */
    void (*multiply)(bz_type type, const void *panels, size_t count, const void *block, size_t rows,
                     size_t k, float *out, size_t stride);
    /* A thread calls begin before and end after its calls of multiply for weights of that type.
     * NULL: nothing is to be done. */
    void (*begin)(bz_type type);
    void (*end)(void);
};

/* multiply for any number of rows, in blocks one after another. */
void bz_product_multiply(const bz_products *p, bz_type type, const void *panels, size_t count,
                         const void *blocks, size_t rows, size_t k, float *out, size_t stride);

/* Measures a product of many rows with both, some hundred microseconds in all: whether `these` have
 * the same bits as `known` and take less time. False if there is no memory for it. */
bool bz_products_pay(const bz_products *these, const bz_products *known);

#if defined(__x86_64__)
extern const bz_products bz_products_avx2, bz_products_avxvnni, bz_products_avx512, bz_products_amx;
#elif defined(__aarch64__)
extern const bz_products bz_products_dotprod, bz_products_i8mm;
#elif defined(__wasm_simd128__)
extern const bz_products bz_products_wasm;
#endif

/* Values that share a scale. */
size_t bz_product_group(bz_type type);

/* A block of activations of B = BZ_BLOCK_ROWS rows. */
typedef struct bz_product_block {
    uint8_t *q;               /* [K/4][B] four values; for VNNI plus 128; for I8MM [K/8][B] eight */
    float *d, *sum32, *sum16; /* [K/32][B] scale, scale * sum of 32; [K/16][B] scale * sum of 16 */
    int32_t *total32, *total16; /* [K/32][B], [K/16][B] the sums */
} bz_product_block;

static inline bz_product_block bz_product_block_at(const void *memory, size_t k)
{
    enum { B = BZ_BLOCK_ROWS };
    bz_product_block b = {.q = (uint8_t *)(uintptr_t)memory};
    b.d = (float *)(void *)(b.q + k * B);
    b.sum32 = b.d + k / 32 * B;
    b.sum16 = b.sum32 + k / 32 * B;
    b.total32 = (int32_t *)(void *)(b.sum16 + k / 16 * B);
    b.total16 = b.total32 + k / 32 * B;
    return b;
}

size_t bz_product_block_bytes(size_t k);

/* The numbers of group g of 32 of a row; total0, total1: the sums of its halves. */
static inline void bz_product_block_group(const bz_product_block *b, const bz_q8 *x, size_t g,
                                          size_t slot, int32_t total0, int32_t total1)
{
    enum { B = BZ_BLOCK_ROWS };
    b->d[g * B + slot] = x->d[g];
    b->sum32[g * B + slot] = x->d[g] * (float)(total0 + total1);
    b->total32[g * B + slot] = total0 + total1;
    b->sum16[2 * g * B + slot] = x->sum[2 * g];
    b->sum16[(2 * g + 1) * B + slot] = x->sum[2 * g + 1];
    b->total16[2 * g * B + slot] = total0;
    b->total16[(2 * g + 1) * B + slot] = total1;
}

/* bz_products.arrange_in_block in plain C, by four and by eight values, and for AVX-512 (in
 * products_256_many.h). */
void bz_product_arrange(const bz_q8 *x, size_t k, size_t slot, void *block);
void bz_product_arrange_eights(const bz_q8 *x, size_t k, size_t slot, void *block);
void bz_product_arrange_plus_128(const bz_q8 *x, size_t k, size_t slot, void *block);

/* Unpacked weights from value i on, a multiple of 16. */
static inline bz_w8 bz_w8_at(bz_w8 w, size_t i)
{
    return (bz_w8){w.q + i, w.s + i / 16, w.m + i / 16};
}

#endif
