/* What the tables of integer products with 128 bits share: products_128.c, products_i8mm.c. */
#ifndef BZ_CPU_PRODUCTS_128_H
#define BZ_CPU_PRODUCTS_128_H

#include <string.h>

#include "cpu/products.h"

#define INLINE static inline __attribute__((always_inline))

typedef float f32x4 __attribute__((vector_size(16)));
typedef int32_t i32x4 __attribute__((vector_size(16)));

enum { L = 4, QUAD = 4 /* weight rows of a vector */, PAIR = 2 * QUAD };

INLINE f32x4 splat(float v)
{
    return (f32x4){v, v, v, v};
}

/* Values that share a scale, and whether there are minima. Constants where it matters. */
typedef struct form {
    size_t G;
    bool has_min;
} form;

#define BY_FORM(type, call)                                                                        \
    do {                                                                                           \
        const bool min_ = bz_type_has_min(type);                                                   \
        if (bz_product_group(type) == 32 && min_) {                                                \
            const form f = {32, true};                                                             \
            call;                                                                                  \
        } else if (bz_product_group(type) == 32) {                                                 \
            const form f = {32, false};                                                            \
            call;                                                                                  \
        } else if (min_) {                                                                         \
            const form f = {16, true};                                                             \
            call;                                                                                  \
        } else {                                                                                   \
            const form f = {16, false};                                                            \
            call;                                                                                  \
        }                                                                                          \
    } while (0)

/* A row as it is; scale * sum of every group of 32; room for four unpacked weight rows. */
typedef struct few_row {
    bz_q8 x;
    float sums32[];
} few_row;

static inline size_t arranged_bytes(size_t k)
{
    const size_t bytes =
        sizeof(few_row) + k / 32 * sizeof(float) + QUAD * (k + 2 * (k / 16) * sizeof(float));
    return (bytes + 63) / 64 * 64;
}

static inline void arrange_row(bz_type type, const bz_q8 *x, size_t k, void *memory)
{
    few_row *row = memory;
    row->x = *x;
    for (size_t g = 0; bz_product_group(type) == 32 && bz_type_has_min(type) && g < k / 32; g++) {
        int32_t total = 0;
        for (size_t i = 0; i < 32; i++)
            total += x->q[32 * g + i];
        row->sums32[g] = x->d[g] * (float)total;
    }
}

/* Room for four unpacked weight rows, after an arranged row. */
INLINE bz_w8 unpacked_rows(uint8_t *memory, size_t k)
{
    float *rest = ((few_row *)(void *)memory)->sums32 + k / 32;
    return (bz_w8){
        .s = rest, .m = rest + QUAD * (k / 16), .q = (int8_t *)(rest + 2 * QUAD * (k / 16))};
}

/* One number of each of four rows. */
INLINE f32x4 column(const float *from, size_t stride)
{
    return (f32x4){from[0], from[stride], from[2 * stride], from[3 * stride]};
}

/* Where group g of `groups` is, if groups 0, L, 2L, ... come first, then 1, L + 1, ... */
INLINE size_t place_of(size_t g, size_t groups)
{
    const size_t lane = g % L, longer = groups % L, each = groups / L;
    return lane * each + (lane < longer ? lane : longer) + g / L;
}

#endif
