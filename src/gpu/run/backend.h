/* The GPU back end: the same plans on WebGPU. */
#ifndef BZ_GPU_BACKEND_H
#define BZ_GPU_BACKEND_H

#include "gpu/run/load.h"
#include "plan/backend.h"

/* For one session, over a model that is loaded; holds on to it. */
bz_status bz_gpu_new(bz_backend **out, bz_gpu_model *model, bool f32_cache, bool fuse,
                     bz_error *err);
/* What towers multiply may be rounded to f16, where the device is then faster. Before a plan is
 * prepared. */
void bz_gpu_allow_f16(bz_backend *backend);

/* Where a schedule's time goes: one line per kernel and weight type, slowest first. Runs a pass of
 * all its rows from `position` on, and the choice of a token, kernel by kernel; what the caches
 * hold there is lost, and what passes were to leave must be said again. Needs timestamps. Returns
 * the number of lines, 0 without them. */
typedef struct bz_gpu_line {
    char name[48];
    uint32_t dispatches;
    double microseconds;
    uint64_t weight_bytes;
} bz_gpu_line;

size_t bz_gpu_profile(bz_backend *backend, const bz_schedule *schedule, uint32_t position,
                      bz_gpu_line *lines, size_t cap);

/* What a schedule became, dispatch by dispatch. */
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
