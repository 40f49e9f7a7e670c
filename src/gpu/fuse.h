/* Steps that one kernel can do together. The only place where the GPU's list departs from the plan's; with
 * fusing off, every step is a kernel of its own, and both give the same numbers. */
#ifndef BZ_GPU_FUSE_H
#define BZ_GPU_FUSE_H

#include "plan/plan.h"

typedef enum gpu_fusion {
    GPU_FUSE_NONE,
    GPU_FUSE_NORM_ADD,       /* rms_norm, add:          in1 + norm(in0) */
    GPU_FUSE_NORM_ADD_SCALE, /* rms_norm, add, scale:  (in1 + norm(in0)) * w */
    GPU_FUSE_NORM_ROPE       /* rms_norm, rope:         per head */
} gpu_fusion;

/* What begins at step `first`, and how many steps it takes (1 for none). */
gpu_fusion gpu_fuse(const bz_plan *plan, size_t first, size_t *count);

#endif
