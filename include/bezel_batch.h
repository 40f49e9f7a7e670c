/* bezel_batch.h: many sequences over one model, decoded together.
 *
 * A pass reads the weights once for all sequences, so several together take far less time than one
 * after the other. On the CPU each gets, bit for bit, the tokens that a session of its own would
 * produce. On a GPU kernels and the order of sums depend on the number of rows of a pass: logits
 * differ from a session's in the last bits, and with int8 activations and more than 8 sequences by
 * the error of rounding them in groups of 32 instead of 16.
 *
 *     bz_batch_new(&batch, model, &options, &err);
 *     while (there is work) {
 *         while (a slot is free) bz_batch_start(batch, ids, n, &generate, &slot, &err);
 *         bz_batch_step(batch, on_event, user, &err);
 *     }
 *
 * A slot keeps its caches when its sequence ends, so that later ones reuse the prefix they share:
 * in place, or copied from another slot, which may be in use. Slots are allocated when they are
 * first needed. A batch runs where its model was opened, CPU or GPU; a diffusion model runs one
 * sequence at a time. One thread at a time. */
#ifndef BEZEL_BATCH_H
#define BEZEL_BATCH_H

#include "bezel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bz_batch bz_batch;

enum { BZ_BATCH_MAX_SLOTS = 64 };

typedef struct bz_batch_options {
    size_t size;
    uint32_t slots;      /* sequences at the same time, at most BZ_BATCH_MAX_SLOTS; 0: 4 */
    uint32_t context;    /* positions of each sequence; 0: the model's limit, at most 32,768 */
    uint32_t chunk;      /* prompt tokens per pass, at most 512; 0: 512 */
    unsigned threads;    /* 0: one per processor; at most four per processor */
    const char *kernels; /* "amx", "avx512bf16", "avx512", "avxvnni", "avx2", "i8mm", "dotprod",
                            "neon", "plain"; NULL: the best this machine has */
    bool exact;          /* f32 activations and caches instead of int8 and f16 */
    bool no_fuse;        /* GPU: one kernel per step */
    const char *kv;      /* as in bz_session_options; NULL: f16, or f32 with `exact` */
} bz_batch_options;

/* options may be NULL. Free the batch before the model. */
BZ_API bz_status bz_batch_new(bz_batch **batch, const bz_model *model,
                              const bz_batch_options *options, bz_error *err);
BZ_API void bz_batch_free(bz_batch *batch);

/* Starts a sequence in a free slot, usually the one that can reuse the longest prefix, and returns
 * its number. Of `options`, sampling, max_tokens, ignore_end and grammar may be set; the others are
 * refused. The ids are copied. */
BZ_API bz_status bz_batch_start(bz_batch *batch, const int32_t *ids, size_t n,
                                const bz_generate_options *options, uint32_t *slot, bz_error *err);
/* Ends the sequence of a slot: in a callback for that slot, or between two steps. The slot is free
 * at once, or after the pass in flight; no more events come for it. */
BZ_API void bz_batch_stop(bz_batch *batch, uint32_t slot);

typedef struct bz_batch_event {
    uint32_t slot;
    int32_t token;    /* generated; -1: none, see error */
    bz_finish finish; /* not BZ_FINISH_NONE: the sequence has ended and its slot is free */
    bz_error error;   /* code not 0: the sequence has failed and its slot is free */
} bz_batch_event;
typedef void (*bz_batch_callback)(void *user, const bz_batch_event *event);

/* Does about 10 ms of work, or waits as long for the GPU: on a chunk of a prompt, or on a token for
 * every sequence. The two alternate, so that a long prompt does not hold up running answers. Calls
 * `on_event` for every token. A lost GPU is replaced. An error ends all sequences; then the batch
 * can only be freed. */
BZ_API bz_status bz_batch_step(bz_batch *batch, bz_batch_callback on_event, void *user,
                               bz_error *err);

/* Whether bz_batch_start would find a free slot. */
BZ_API bool bz_batch_has_free(const bz_batch *batch);
/* Prompt tokens that needed no computing, since the batch was made. */
BZ_API uint64_t bz_batch_reused(const bz_batch *batch);
/* The same for the sequence that was started last in a slot. */
BZ_API uint32_t bz_batch_slot_reused(const bz_batch *batch, uint32_t slot);
/* Bytes of all caches. */
BZ_API uint64_t bz_batch_cache_bytes(const bz_batch *batch);

#ifdef __cplusplus
}
#endif
#endif
