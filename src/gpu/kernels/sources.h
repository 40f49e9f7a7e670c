/* The text of the WGSL files under kernels/, put into the program at build time (tools/embed.sh).
 */
#ifndef BZ_GPU_SOURCES_H
#define BZ_GPU_SOURCES_H

#include <stddef.h>

typedef struct gpu_source {
    const char *name; /* "attend.wgsl", "quant/q4_k.wgsl" */
    const char *text;
    size_t n;
} gpu_source;

extern const gpu_source gpu_sources[];
extern const size_t gpu_n_sources;

#endif
