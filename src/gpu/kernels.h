/* Kernels by name and weight type, compiled once each. */
#ifndef BZ_GPU_KERNELS_H
#define BZ_GPU_KERNELS_H

#include "file/quant.h"
#include "gpu/gpu.h"

typedef enum gpu_kernel {
    GPU_EMBED,
    GPU_LINEAR_ROW,  /* up to 8 rows */
    GPU_LINEAR_TILE, /* more */
    GPU_NORM,
    GPU_ELEMENTWISE,
    GPU_ROPE,
    GPU_KV_WRITE,
    GPU_ATTEND,
    GPU_ROUTE,
    GPU_EXPERT_LINEAR,
    GPU_EXPERT_SUM,
    GPU_N_KERNELS
} gpu_kernel;

typedef struct gpu_kernels gpu_kernels;

gpu_kernels *gpu_kernels_new(gpu *g); /* NULL: out of memory */
void gpu_kernels_free(gpu_kernels *ks);

/* The pipeline of a kernel, perhaps still compiling. `type` counts for products and embed;
 * `constant` is the value of the kernel's one override (0 where it has none). 0 and *err on failure. */
gpu_pipeline gpu_kernels_get(gpu_kernels *ks, gpu_kernel kernel, bz_type type, uint32_t constant, bz_error *err);

/* Are all pipelines asked for so far ready? FAILED fills *err. */
gpu_pipeline_state gpu_kernels_state(gpu_kernels *ks, bz_error *err);

#endif
