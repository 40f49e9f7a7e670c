/* Predicts how much memory a text model needs, before any of it is allocated.
 *
 * The numbers come from the recorded plans and the table of caches. A back end's scratch memory
 * is not counted; it is a few megabytes per thread.
 */
#ifndef BZ_MODEL_MEMORY_H
#define BZ_MODEL_MEMORY_H

#include "model/text.h"

typedef struct bz_memory {
    uint32_t chunk;          /* rows of the largest pass */
    uint64_t weight_bytes;   /* every tensor the forward pass uses */
    uint64_t table_bytes;    /* the part of them that is embedding tables: one row per token */
    uint64_t token_bytes;    /* weights read to decode one token, or by one pass over a canvas */
    uint64_t arena_bytes;    /* activations of a pass of `chunk` rows */
    uint64_t snapshot_bytes; /* one snapshot of the rings */
} bz_memory;

bz_status bz_memory_predict(bz_memory *memory, const bz_text_model *m, bz_cache_type type,
                            uint32_t chunk, bz_error *err);

/* Bytes of keys and values of that type for a context of that many positions; sliding layers have
 * rings of window + chunk - 1 rows. */
uint64_t bz_memory_cache(const bz_text_model *m, bz_cache_type type, uint32_t context,
                         uint32_t chunk);

#endif
