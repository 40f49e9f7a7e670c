/* The WGSL files under src/gpu/kernels, embedded at build time by tools/embed.sh.
 */
#ifndef BZ_GPU_SOURCES_H
#define BZ_GPU_SOURCES_H

#include <stddef.h>

typedef struct gpu_source {
    const char *name; /* "product/embed.wgsl", "types/q4_k.wgsl" */
    const char *text;
    size_t n;
} gpu_source;

extern const gpu_source gpu_sources[];
extern const size_t gpu_n_sources;

#endif
