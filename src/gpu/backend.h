/* The GPU back end: the same plans on WebGPU. */
#ifndef BZ_GPU_BACKEND_H
#define BZ_GPU_BACKEND_H

#include "gpu/gpu.h"
#include "plan/backend.h"

/* Uploads the weights. `device` stays the caller's and must outlive the back end. */
bz_status bz_gpu_new(bz_backend **out, gpu *device, const bz_weights *weights, const uint8_t *const *weight_bytes,
                     bool f32_cache, bz_error *err);

#endif
