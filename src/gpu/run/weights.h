/* Where a model's weights lie in GPU buffers. A tensor larger than one binding may be lies in
 * several pieces, cut between rows. */
#ifndef BZ_GPU_WEIGHTS_H
#define BZ_GPU_WEIGHTS_H

#include "gpu/device/gpu.h"
#include "gpu/lower/layout.h"
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
    uint64_t bytes;     /* of all buffers */
    bz_weight left_out; /* has no place */
    /* Layers whose matrices come from the file for every pass take turns in two slots. */
    uint32_t *streamed; /* [table->n] 1 + its layer's number among those layers; 0: stays */
    uint32_t n_streamed, n_layers;
    uint64_t stream_bytes; /* of all of them, in the file */
} gpu_weights;

enum { GPU_SLOTS = 2 };

/* Gives every tensor its place; nothing is made on the device yet. */
bz_status gpu_weights_place(gpu_weights *w, const gpu_limits *limits, const bz_weights *table,
                            bz_weight left_out, bz_error *err);
/* The same with the matrices of so many layers, spread over all, in turns. */
bz_status gpu_weights_place_some(gpu_weights *w, const gpu_limits *limits, const bz_weights *table,
                                 bz_weight left_out, uint32_t streamed, bz_error *err);
/* How many layers must take turns for all buffers to have at most so many bytes; all, if that is
 * not enough. */
bz_status gpu_weights_fit(const gpu_limits *limits, const bz_weights *table, bz_weight left_out,
                          uint64_t bytes, uint32_t *streamed, bz_error *err);
/* Makes the next buffer; all are there when n_made == n_buffers. */
bz_status gpu_weights_make(gpu_weights *w, gpu *g, bz_error *err);
void gpu_weights_unmake(gpu_weights *w, gpu *g); /* frees the buffers alone */
void gpu_weights_free(gpu_weights *w, gpu *g);

/* Any number of bytes; what is left of the last word is zeros. */
void gpu_write_bytes(gpu *g, gpu_binding to, const uint8_t *bytes, uint64_t n);

#endif
