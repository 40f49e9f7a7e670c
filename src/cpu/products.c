/* What all tables of integer products share. */
#include "cpu/products.h"

#include <string.h>

size_t bz_product_group(bz_type type)
{
    return type == BZ_Q2_K || type == BZ_Q3_K || type == BZ_Q6_K ? 16 : 32;
}

size_t bz_product_block_bytes(size_t k)
{
    return BZ_BLOCK_ROWS * (k + (k / 32 * 3 + k / 16 * 2) * sizeof(float));
}

void bz_product_multiply(const bz_products *p, bz_type type, const void *panels, size_t count,
                         const void *blocks, size_t rows, size_t k, float *out, size_t stride)
{
    const uint8_t *block = blocks;
    if (p->begin)
        p->begin(type);
    for (size_t r = 0; r < rows; r += p->block_rows, block += p->block_bytes(k))
        p->multiply(type, panels, count, block, rows - r < p->block_rows ? rows - r : p->block_rows,
                    k, out + r * stride, stride);
    if (p->end)
        p->end();
}

/* The values of a row lie together by `together`. */
static inline void arrange(size_t together, const bz_q8 *x, size_t k, size_t slot, void *block)
{
    enum { B = BZ_BLOCK_ROWS };
    const bz_product_block b = bz_product_block_at(block, k);
    for (size_t i = 0; i < k; i += together)
        memcpy(b.q + i * B + together * slot, x->q + i, together);
    for (size_t g = 0; g < k / 32; g++) {
        int32_t total[2] = {0, 0};
        for (size_t i = 0; i < 32; i++)
            total[i / 16] += x->q[32 * g + i];
        bz_product_block_group(&b, x, g, slot, total[0], total[1]);
    }
}

void bz_product_arrange(const bz_q8 *x, size_t k, size_t slot, void *block)
{
    arrange(4, x, k, slot, block);
}

void bz_product_arrange_eights(const bz_q8 *x, size_t k, size_t slot, void *block)
{
    arrange(8, x, k, slot, block);
}
