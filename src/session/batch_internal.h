/* Internals of batches, shared by batch.c (create and free), batch_start.c (sequences),
 * batch_pass.c and batch_lists.c (passes), and batch_device.c (back end and caches). */
#ifndef BZ_BATCH_INTERNAL_H
#define BZ_BATCH_INTERNAL_H

#include "bezel_batch.h"
#include "session/batch_canvas.h"
#include "session/constraint.h"
#include "session/emit.h"
#include "session/model.h"
#include "session/session.h"

enum {
    BZ_BATCH_BUCKETS = 5,     /* sizes of a pass over a chunk of a prompt */
    BZ_BATCH_DECODE_SIZES = 5 /* sizes of a pass with a row of each sequence */
};

typedef enum slot_state { SLOT_FREE, SLOT_PREFILL, SLOT_DECODE } slot_state;

typedef struct batch_slot {
    slot_state state;
    bool stopped; /* becomes free when the pass in flight ends */
    bz_kv *kv;    /* NULL: the slot is not allocated yet */
    bz_sampler *sampler;
    bool requested; /* the device knows what lists the sampler needs */
    uint64_t seed;
    bz_limits limits;
    bz_constraint *constraint; /* of a sequence that is not free; else NULL */

    int32_t *tokens;    /* [context] what the caches hold, then the rest of the prompt */
    uint32_t n, wanted; /* held; of the prompt */
    bz_rings rings;     /* with one snapshot, of the shared prefix */
    uint32_t shared;    /* tokens that the prompt has in common with the one before */
    uint32_t reused;    /* tokens of the prompt that were not computed for it */
    uint64_t used;      /* when a sequence was last started here */
} batch_slot;

struct bz_batch {
    const bz_model *model;
    bz_adapter_set *adapters; /* of all sequences; NULL: none */
    bz_canvas_batch *canvas;  /* of a diffusion model, which it runs alone; else NULL */
    bz_batch_options options; /* of the back end: exact, no_fuse, threads, kernels */
    bz_cache_type cache_type;
    bz_backend *backend;        /* NULL: the device was lost; the next step looks for another */
    const bz_gpu_model *device; /* on a GPU: where back end and caches are */
    bool was_lost;              /* the device, when all slots together held lost_at tokens */
    uint64_t lost_at;
    uint32_t context, chunk, vocab;
    batch_slot slots[BZ_BATCH_MAX_SLOTS];
    uint32_t n_slots;
    session_plan one[BZ_BATCH_BUCKETS];       /* rows of one sequence, logits of one row */
    session_plan many[BZ_BATCH_DECODE_SIZES]; /* rows of many sequences, logits of all */
    int32_t *last;                            /* [n_last] the prompt started last */
    uint32_t n_last;
    uint64_t reused;
    uint64_t clock;         /* sequences started */
    bool prompt_was_last;   /* the last pass was one of a prompt */
    uint32_t last_prefill;  /* slot of the last pass of a prompt */
    uint64_t waiting_since; /* for the device; 0: not */

    /* the current pass */
    enum { NO_PASS, PREFILL_PASS, DECODE_PASS } pass;
    session_plan *running;
    uint32_t active[BZ_BATCH_MAX_SLOTS], n_active; /* slots in it, in order of their rows */
    uint32_t end; /* of a prefill: the position after its last row */
    bz_rows rows;
    bool listed, sent;   /* it ends in short lists (batch_lists.c); it is in flight */
    bz_shortlist *lists; /* [n_slots] by row; NULL on the CPU */
    int32_t chosen[BZ_BATCH_MAX_SLOTS]; /* by row; -1: the list has an error */
    int32_t id[BZ_MAX_CHUNK], pos[BZ_MAX_CHUNK];
    uint32_t seq[BZ_MAX_CHUNK], out[BZ_MAX_CHUNK];
    void *kv[BZ_BATCH_MAX_SLOTS];
};

/* Tells the slot's sampler which tokens may come next. */
bz_status bz_batch_allow(batch_slot *s, bz_error *err);

/* Allocates the caches of a slot, unless it has them. */
bz_status bz_batch_make_slot(bz_batch *b, uint32_t index, bz_error *err);
/* If another slot holds more of the prompt of this one, copies its rows. */
bz_status bz_batch_copy_prefix(bz_batch *b, batch_slot *s, bz_error *err);

#endif
