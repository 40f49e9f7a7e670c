/* What all tables of integer products share. */
#include "cpu/products.h"

#include <string.h>

size_t bz_product_group(bz_type type)
{
    return type == BZ_Q2_K || type == BZ_Q3_K || type == BZ_Q6_K ? 16 : 32;
}

size_t bz_product_block_bytes(size_t k)
{
    return BZ_BLOCK_ROWS * (k + (k / 32 * 2 + k / 16) * sizeof(float));
}

void bz_product_arrange(const bz_q8 *x, size_t k, size_t slot, void *block)
{
    enum { B = BZ_BLOCK_ROWS };
    uint8_t *bytes = block;
    float *d = (float *)(void *)(bytes + k * B), *sum32 = d + k / 32 * B,
          *sum16 = sum32 + k / 32 * B;
    for (size_t i = 0; i < k; i += 4) {
        uint32_t four;
        memcpy(&four, x->q + i, sizeof four);
        four ^= 0x80808080u; /* + 128 */
        memcpy(bytes + i * B + 4 * slot, &four, sizeof four);
    }
    for (size_t g = 0; g < k / 32; g++) {
        int32_t total = 0;
        for (size_t i = 0; i < 32; i++)
            total += x->q[32 * g + i];
        d[g * B + slot] = x->d[g];
        sum32[g * B + slot] = x->d[g] * (float)total;
        sum16[2 * g * B + slot] = x->sum[2 * g];
        sum16[(2 * g + 1) * B + slot] = x->sum[2 * g + 1];
    }
}
