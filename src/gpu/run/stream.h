/* Layers that do not fit: their matrices are read from the file for every pass.
 *
 * Two slots of GPU memory hold one such layer each. A pass is submitted in segments; after the
 * segment that uses a layer, the bytes of the next layer are queued for the other slot. The order
 * of the queue is the only synchronization needed: a slot is overwritten after the commands that
 * read it. Bytes are uploaded in slices, with a bound on how many are in flight. */
#ifndef BZ_GPU_STREAM_H
#define BZ_GPU_STREAM_H

#include "gpu/run/weights.h"
#include "plan/backend.h"

typedef struct gpu_stream gpu_stream;

/* weight_bytes as in bz_gpu_model_new; what is not in memory is requested as reads. */
bz_status gpu_stream_new(gpu_stream **out, gpu *g, const gpu_weights *weights,
                         const uint8_t *const *weight_bytes, bz_error *err);
void gpu_stream_free(gpu_stream *s);

/* The slots belong to one pass at a time; false: to another one now. */
bool gpu_stream_take(gpu_stream *s, const void *session);
void gpu_stream_leave(gpu_stream *s, const void *session); /* also if it never had them */

/* Works on getting a layer into its slot: DONE when all its bytes are on their way, AGAIN, WAIT,
 * BYTES or ERROR. */
bz_pass_state gpu_stream_fetch(gpu_stream *s, uint32_t layer, uint64_t deadline, bz_error *err);
uint32_t gpu_stream_reads(gpu_stream *s, bz_read reads[BZ_MAX_READS]);

#endif
