/* Layout of a block type in GPU memory. Most types keep the layout of the file; others are repacked
 * on the GPU while loading, row by row, by kernels/types/repack.wgsl. */
#ifndef BZ_GPU_LAYOUT_H
#define BZ_GPU_LAYOUT_H

#include <stdbool.h>

#include "file/quant.h"

typedef struct gpu_layout {
    uint32_t block_bytes; /* in the buffer */
    bool repacked;        /* false: as in the file */
} gpu_layout;

gpu_layout gpu_layout_of(bz_type type);

/* Bytes of a row of n values in the buffer. */
size_t gpu_row_bytes(bz_type type, uint64_t n);

#endif
