/* What products_amx.c shares with products_avx512.c: everything but products of many rows. */
#ifndef BZ_CPU_PRODUCTS_AVX512_H
#define BZ_CPU_PRODUCTS_AVX512_H

#include "cpu/products.h"

#define INLINE static inline __attribute__((always_inline))

/* A panel has 16 weight rows. For each group, in the order of the sums: vectors of corrections
 * (-128 * sum of the weights, for activations that are x + 128), scales, minima, then G / 4 vectors
 * of four values of each row. A tile is two panels, group by group. */
enum { PANEL_CORRECTION, PANEL_SCALE, PANEL_MINIMUM, PANEL_VALUES };

INLINE size_t group_vectors(const size_t G)
{
    return PANEL_VALUES + G / 4;
}

/* As in bz_products. */
void bz_arrange_row_avx512(bz_type type, const bz_q8 *x, size_t k, void *row);
void bz_rows_avx512(bz_type type, const uint8_t *blocks, size_t count, void *memory, size_t n,
                    size_t k, float *out, size_t stride);
size_t bz_row_bytes_avx512(size_t k);
void bz_pack_avx512(bz_type type, const uint8_t *blocks, size_t count, size_t k, bz_w8 unpacked,
                    void *panels);
size_t bz_panel_bytes_avx512(size_t k);

#endif
