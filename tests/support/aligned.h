/* Memory at multiples of 64 bytes. Not by base/os.h, whose WebAssembly form cannot be linked into a
 * program of its own. */
#ifndef BZ_TEST_ALIGNED_H
#define BZ_TEST_ALIGNED_H

#include <stdlib.h>

#if defined(_WIN32)
#include <malloc.h>
#endif

/* bytes: a multiple of 64. Freed with aligned_free. */
static inline void *aligned_new(size_t bytes)
{
#if defined(_WIN32)
    return _aligned_malloc(bytes, 64);
#else
    return aligned_alloc(64, bytes);
#endif
}

static inline void aligned_free(void *p)
{
#if defined(_WIN32)
    _aligned_free(p);
#else
    free(p);
#endif
}

#endif
