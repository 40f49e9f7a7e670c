/* Compute pipelines of the kernels, compiled once each. */
#ifndef BZ_GPU_PIPELINES_H
#define BZ_GPU_PIPELINES_H

#include "gpu/device/gpu.h"
#include "gpu/kernels/catalog.h"

typedef struct gpu_pipelines gpu_pipelines;

gpu_pipelines *gpu_pipelines_new(gpu *g); /* NULL: out of memory */
void gpu_pipelines_free(gpu_pipelines *ps);

/* The pipeline of a kernel, which may still be compiling. `type` counts if the kernel reads blocks.
 * 0 and *err on failure. */
gpu_pipeline gpu_pipelines_get(gpu_pipelines *ps, gpu_kernel kernel, bz_type type,
                               gpu_overrides overrides, bz_error *err);

/* Are all pipelines requested so far ready? FAILED fills *err. */
gpu_pipeline_state gpu_pipelines_state(gpu_pipelines *ps, bz_error *err);

#endif
