/* Where a model's weights lie in GPU buffers. A tensor larger than one binding may be lies in several
 * pieces, cut between rows. */
#ifndef BZ_GPU_WEIGHTS_H
#define BZ_GPU_WEIGHTS_H

#include "gpu/gpu.h"
#include "gpu/layout.h"
#include "plan/weights.h"

typedef struct gpu_piece {
    gpu_binding at;
    uint32_t first_row, rows; /* of the tensor seen as rows of ne[0] values */
} gpu_piece;

typedef struct gpu_weights {
    const bz_weights *table;
    gpu_piece *pieces;
    uint32_t *first_piece; /* [table->n + 1] */
    gpu_buffer *buffers;   /* [n_buffers], 0 until made */
    uint64_t *sizes;       /* of them */
    uint32_t n_buffers, n_made;
    uint64_t bytes; /* of all buffers */
    bz_weight left_out; /* has no place */
} gpu_weights;

/* Gives every tensor its place; nothing is made on the device yet. */
bz_status gpu_weights_place(gpu_weights *w, const gpu_limits *limits, const bz_weights *table, bz_weight left_out,
                            bz_error *err);
/* Makes the next buffer; all are there when n_made == n_buffers. */
bz_status gpu_weights_make(gpu_weights *w, gpu *g, bz_error *err);
void gpu_weights_unmake(gpu_weights *w, gpu *g); /* frees the buffers alone */
void gpu_weights_free(gpu_weights *w, gpu *g);

/* Any number of bytes; what is left of the last word is zeros. */
void gpu_write_bytes(gpu *g, gpu_binding to, const uint8_t *bytes, uint64_t n);

#endif
