/* The buffers of a model's weights: which tensor lies where (gpu_weight_map), and the buffers
 * themselves. Filled by load.c. */
#ifndef BZ_GPU_WEIGHTS_H
#define BZ_GPU_WEIGHTS_H

#include "gpu/lower/weight_map.h"

typedef struct gpu_weights {
    gpu_weight_map map;
    gpu_buffer *buffers; /* [n_buffers], 0 until created */
    uint64_t *sizes;     /* of them */
    uint32_t n_buffers, n_made;
    uint64_t bytes; /* of all buffers */
    /* Layers whose matrices are read from the file for every pass share two slots. */
    uint32_t
        *streamed; /* [tensors] number of its layer among the streamed ones, from 1; 0: stays */
    uint32_t n_streamed, n_layers;
    uint64_t stream_bytes; /* of all of them, in the file */
} gpu_weights;

enum { GPU_SLOTS = 2 };

/* Assigns every tensor its pieces; creates nothing on the device. Until all buffers are created,
 * gpu_binding.buffer of a piece is an index into `buffers`. in_file: gets no pieces; may be none.
 */
bz_status gpu_weights_place(gpu_weights *w, const gpu_limits *limits, const bz_weights *table,
                            bz_weight in_file, bz_error *err);
/* The same with the matrices of that many layers, spread evenly over the model, streamed. */
bz_status gpu_weights_place_streamed(gpu_weights *w, const gpu_limits *limits,
                                     const bz_weights *table, bz_weight in_file, uint32_t streamed,
                                     bz_error *err);
/* The number of layers to stream so that all buffers together have at most `bytes`; all layers if
 * even that does not suffice. */
bz_status gpu_weights_fit(const gpu_limits *limits, const bz_weights *table, bz_weight in_file,
                          uint64_t bytes, uint32_t *streamed, bz_error *err);
/* Creates the next buffer; all exist when n_made == n_buffers. */
bz_status gpu_weights_make(gpu_weights *w, gpu *g, bz_error *err);
void gpu_weights_unmake(gpu_weights *w, gpu *g); /* frees the buffers only */
void gpu_weights_free(gpu_weights *w, gpu *g);

/* Any number of bytes; the last word is padded with zeros. */
void gpu_write_bytes(gpu *g, gpu_binding to, const uint8_t *bytes, uint64_t n);

#endif
