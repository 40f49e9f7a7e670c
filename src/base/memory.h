/* Allocation with 64-bit sizes (as files have them), also where size_t has 32 bits. */
#ifndef BZ_BASE_MEMORY_H
#define BZ_BASE_MEMORY_H

#include <stdint.h>
#include <stdlib.h>

static inline void *bz_alloc(uint64_t n)
{
    return (size_t)n == n ? malloc((size_t)n) : NULL;
}

/* Of zeros: large ones take no memory until they are written. */
static inline void *bz_alloc_zeros(uint64_t n)
{
    return (size_t)n == n ? calloc(1, (size_t)n) : NULL;
}

static inline void *bz_realloc(void *p, uint64_t n)
{
    return (size_t)n == n ? realloc(p, (size_t)n) : NULL;
}

#endif
