/* Internals of batches, shared by batch.c (create and free), batch_start.c (sequences) and
 * batch_pass.c (passes). */
#ifndef BZ_BATCH_INTERNAL_H
#define BZ_BATCH_INTERNAL_H

#include "bezel_batch.h"
#include "session/batch_canvas.h"
#include "session/emit.h"
#include "session/model.h"
#include "session/session.h"

enum { BZ_BATCH_BUCKETS = 4 }; /* sizes of a pass */

typedef enum slot_state { SLOT_FREE, SLOT_PREFILL, SLOT_DECODE } slot_state;

/* One sequence, or room for one. */
typedef struct batch_slot {
    slot_state state;
    bz_kv *kv;
    bz_sampler *sampler;
    uint64_t seed;
    bz_limits limits;

    int32_t *tokens;    /* [context] what the caches hold, then the rest of the prompt */
    uint32_t n, wanted; /* held; of the prompt */
    bz_rings rings;     /* with one snapshot, of the shared prefix */
    uint32_t shared;    /* tokens that the prompt has in common with the one before */
} batch_slot;

struct bz_batch {
    const bz_model *model;
    bz_canvas_batch *canvas; /* of a diffusion model, which it runs alone; else NULL */
    bz_backend *backend;
    uint32_t context, chunk, vocab;
    batch_slot slots[BZ_BATCH_MAX_SLOTS];
    uint32_t n_slots;
    session_plan one[BZ_BATCH_BUCKETS], many; /* one row of logits; all 8 rows */
    int32_t *last;                            /* [n_last] the prompt started last */
    uint32_t n_last;
    uint64_t reused;

    /* the current pass */
    enum { NO_PASS, PREFILL_PASS, DECODE_PASS } pass;
    session_plan *running;
    uint32_t active[BZ_BATCH_MAX_SLOTS], n_active; /* slots in it, in order of their rows */
    uint32_t end; /* of a prefill: the position after its last row */
    bz_rows rows;
    int32_t id[BZ_MAX_CHUNK], pos[BZ_MAX_CHUNK];
    uint32_t seq[BZ_MAX_CHUNK], out[BZ_MAX_CHUNK];
    void *kv[BZ_BATCH_MAX_SLOTS];
};

#endif
