/* How much memory a text model will need, before any of it is allocated.
 *
 * The figures come from the recorded plans and the table of caches, that is from what the
 * back ends are given to run. A back end's own scratch memory is not counted; it is a few
 * megabytes per thread.
 */
#ifndef BZ_MODEL_MEMORY_H
#define BZ_MODEL_MEMORY_H

#include "model/text.h"

typedef struct bz_memory {
    uint32_t chunk;        /* rows of the largest pass */
    uint64_t weight_bytes; /* every tensor the forward pass uses */
    uint64_t table_bytes;  /* of them, tables of which a token needs one row each */
    uint64_t
        token_bytes; /* of the weights, read to decode one token, or by one step over a canvas */
    uint64_t arena_bytes;    /* activations of a pass of `chunk` rows */
    uint64_t snapshot_bytes; /* of one way back in a conversation, f16 */
} bz_memory;

bz_status bz_memory_predict(bz_memory *memory, const bz_text_model *m, uint32_t chunk,
                            bz_error *err);

/* Keys and values in f16 for a context of that many positions: sliding layers keep a ring
 * of window + chunk - 1 rows however long it is. */
uint64_t bz_memory_cache(const bz_text_model *m, uint32_t context, uint32_t chunk);

#endif
