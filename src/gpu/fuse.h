/* Steps that one kernel can do together. The only place where the GPU's list departs from the plan's; with
 * fusing off, every step is a kernel of its own, and both give the same numbers.
 *
 * Workgroups of one dispatch run in any order, so nothing a group writes may lie where it reads: the schedule
 * places tensors anew, with whole groups as the unit of time. */
#ifndef BZ_GPU_FUSE_H
#define BZ_GPU_FUSE_H

#include "plan/plan.h"

typedef enum gpu_fusion {
    GPU_FUSE_NONE,
    GPU_FUSE_NORM_ADD,       /* rms_norm, add:          in1 + norm(in0) */
    GPU_FUSE_NORM_ADD_SCALE, /* rms_norm, add, scale:  (in1 + norm(in0)) * w */
    GPU_FUSE_NORM_ROPE       /* rms_norm, rope:         per head */
} gpu_fusion;

/* A stretch of the plan. */
typedef struct gpu_group {
    gpu_fusion fusion;
    uint32_t count; /* steps; 1 for none */
} gpu_group;

/* What begins at step `first`. */
gpu_group gpu_fuse(const bz_plan *plan, size_t first);

#endif
