/* Many sequences over one model, decoded together: a pass reads the weights once for all of them.
 *
 * Each gives, to the last bit, what a session of its own would give. A slot keeps what it has
 * computed when its sequence ends, so that the next one reuses the prefix they share. A diffusion
 * model answers one sequence at a time.
 */
#ifndef BZ_BATCH_H
#define BZ_BATCH_H

#include "base/error.h"

enum { BZ_BATCH_SLOTS = 8 };

typedef struct bz_batch bz_batch;

typedef struct bz_batch_event {
    uint32_t slot;
    int32_t token;    /* chosen; -1: none, see error */
    bz_finish finish; /* not NONE: it was the last, and the slot is free */
    bz_error error;   /* code not 0: the sequence failed, and the slot is free */
} bz_batch_event;

typedef void (*bz_batch_told)(void *user, const bz_batch_event *event);

/* context, chunk, threads and kernels of the options count; the device is the CPU. */
bz_status bz_batch_new(bz_batch **out, const bz_model *model, const bz_session_options *options,
                       uint32_t slots, bz_error *err);
void bz_batch_free(bz_batch *b);

/* Begins a sequence in a free slot, the one that can reuse most, and names it. Of the generate
 * options sampling, max_tokens and ignore_end count. Ids are copied. */
bz_status bz_batch_start(bz_batch *b, const int32_t *ids, size_t n,
                         const bz_generate_options *options, uint32_t *slot, bz_error *err);
/* Frees a slot whose sequence has said enough. Only inside an event of that slot. */
void bz_batch_stop(bz_batch *b, uint32_t slot);

/* About 10 ms of work on a pass: the next chunk of a prompt, or a token for every sequence. Events
 * come before it returns. An error ends all sequences; the batch can only be freed then. */
bz_status bz_batch_step(bz_batch *b, bz_batch_told told, void *user, bz_error *err);

uint64_t bz_batch_reused(const bz_batch *b); /* prompt tokens that needed no computing */

#endif
