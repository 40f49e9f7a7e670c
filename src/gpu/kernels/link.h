/* Assembles the WGSL text of a kernel from the files under src/gpu/kernels. */
#ifndef BZ_GPU_LINK_H
#define BZ_GPU_LINK_H

#include "base/error.h"
#include "gpu/kernels/catalog.h"

/* The text, which the caller frees, and its length; NULL and *err on failure. `type` counts if the
 * kernel reads blocks; `subgroups` selects subgroup operations where the kernel has them. */
char *gpu_link(gpu_kernel kernel, bz_type type, bool subgroups, size_t *n, bz_error *err);

#endif
