/* The GPU back end: the same plans on WebGPU. */
#ifndef BZ_GPU_BACKEND_H
#define BZ_GPU_BACKEND_H

#include "gpu/run/load.h"
#include "plan/backend.h"

/* A back end for one session or encoder, over a loaded model, to which it keeps a reference. exact:
 * f32 activations. cache: the type that its sequences will have. */
bz_status bz_gpu_new(bz_backend **out, bz_gpu_model *model, bool exact, bz_cache_type cache,
                     bool fuse, bz_error *err);
/* Adds the weights of `more`, loaded beside the model: they follow the model's in `table` and
 * `weight_bytes`, which must outlive the back end. Before a plan is prepared. */
bz_status bz_gpu_add_weights(bz_backend *backend, const bz_weights *table,
                             const uint8_t *const *weight_bytes, bz_gpu_model *more, bz_error *err);
/* Allows towers to round activations to f16, if the device is faster with it. Before a plan is
 * prepared. */
void bz_gpu_allow_f16(bz_backend *backend);

/* The time of a schedule by kernel and weight type, slowest first. Runs a pass of all its rows from
 * `position` on, and the choice of a token, dispatch by dispatch; overwrites the caches there and
 * the request of set_topk. Needs timestamps. Returns the number of lines, 0 without timestamps. */
typedef struct bz_gpu_line {
    char name[48];
    uint32_t dispatches;
    double microseconds;
    uint64_t weight_bytes;
} bz_gpu_line;

size_t bz_gpu_profile(bz_backend *backend, const bz_schedule *schedule, uint32_t position,
                      bz_gpu_line *lines, size_t cap);

/* The dispatches of a schedule. */
typedef struct bz_gpu_dispatch {
    char name[48]; /* of the kernel, with the type of its weights */
    uint32_t first_step,
        steps; /* of the plan: several if fused; several dispatches may share one */
    uint32_t n_later, later[4]; /* steps after that range that it computes too */
    const char *rule;           /* name of the fusion rule; NULL: a step alone */
    uint32_t x, y;              /* workgroups */
} bz_gpu_dispatch;

/* Fills up to `cap` and returns how many there are. */
size_t bz_gpu_dispatches(const bz_schedule *schedule, bz_gpu_dispatch *out, size_t cap);

#endif
