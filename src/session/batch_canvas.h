/* A batch of a diffusion model: one sequence at a time, as a canvas fills a pass. Used by batch.c.
 */
#ifndef BZ_BATCH_CANVAS_H
#define BZ_BATCH_CANVAS_H

#include "base/error.h"
#include "bezel_adapter.h"
#include "bezel_batch.h"

typedef struct bz_canvas_batch bz_canvas_batch;

bz_status bz_canvas_batch_new(bz_canvas_batch **out, const bz_model *model,
                              const bz_session_options *options, bz_error *err);
void bz_canvas_batch_free(bz_canvas_batch *b);
bz_status bz_canvas_batch_start(bz_canvas_batch *b, const int32_t *ids, size_t n,
                                const bz_generate_options *options, uint32_t *slot, bz_error *err);
bz_status bz_canvas_batch_set_adapters(bz_canvas_batch *b, const bz_adapter_use *uses, size_t n,
                                       bz_error *err);
void bz_canvas_batch_stop(bz_canvas_batch *b);
bz_status bz_canvas_batch_step(bz_canvas_batch *b, bz_batch_callback on_event, void *user,
                               bz_error *err);
uint64_t bz_canvas_batch_reused(const bz_canvas_batch *b);
uint32_t bz_canvas_batch_last_reused(const bz_canvas_batch *b); /* of the sequence started last */
bool bz_canvas_batch_is_free(const bz_canvas_batch *b);
uint64_t bz_canvas_batch_cache_bytes(const bz_canvas_batch *b);

#endif
