/* Unpacks quantized blocks to int8 values with f32 scales and minima, in plain C. */
#ifndef BZ_CPU_UNPACK_H
#define BZ_CPU_UNPACK_H

#include "cpu/kernels.h"

void bz_unpack_plain(bz_type type, const void *blocks, bz_w8 out, size_t n);

/* The part of `w` that starts at value i, a multiple of 32. */
static inline bz_w8 bz_w8_from(bz_w8 w, bool has_min, size_t i)
{
    return (bz_w8){w.q + i, w.s + i / 16, has_min ? w.m + i / 16 : w.m};
}

#endif
