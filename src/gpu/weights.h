/* A model's weights in GPU buffers. A tensor larger than one binding may be lies in several
 * pieces, cut between rows. */
#ifndef BZ_GPU_WEIGHTS_H
#define BZ_GPU_WEIGHTS_H

#include "gpu/gpu.h"
#include "plan/weights.h"

typedef struct gpu_piece {
    gpu_binding at;
    uint32_t first_row, rows; /* of the tensor seen as rows of ne[0] values */
} gpu_piece;

typedef struct gpu_weights {
    const bz_weights *table;
    gpu_piece *pieces;
    uint32_t *first_piece; /* [table->n + 1] */
    gpu_buffer *buffers;
    uint32_t n_buffers;
    uint64_t bytes;
} gpu_weights;

/* Bytes of a row as it lies in the buffer: Q6_K's blocks are padded to a multiple of 16. */
size_t gpu_row_bytes(bz_type type, size_t n);

/* Uploads every tensor. bytes[i]: the data of table->info[i]. */
bz_status gpu_weights_new(gpu_weights *w, gpu *g, const bz_weights *table, const uint8_t *const *bytes, bz_error *err);
void gpu_weights_free(gpu_weights *w, gpu *g);

#endif
