/* How a weight type lies in GPU memory. Most types lie as in the file; others are repacked on the
 * GPU when they are loaded, row by row, by a kernel of kernels/repack/. */
#ifndef BZ_GPU_LAYOUT_H
#define BZ_GPU_LAYOUT_H

#include "file/quant.h"

typedef struct gpu_layout {
    uint32_t block_bytes; /* in the buffer */
    const char *repack;   /* the kernel's file; NULL: as in the file */
} gpu_layout;

gpu_layout gpu_layout_of(bz_type type);

/* Bytes of a row of n values as it lies in the buffer. */
size_t gpu_row_bytes(bz_type type, uint64_t n);

/* What a repacking kernel is told, as struct Slice of repack.wgsl. */
typedef struct gpu_repack_facts {
    uint32_t first_row, rows, raw_bytes, row_words, piece_rows, values, pad[2];
} gpu_repack_facts;

#endif
