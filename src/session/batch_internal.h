/* What batch.c (making and freeing), batch_start.c (sequences) and batch_pass.c (passes) share. */
#ifndef BZ_BATCH_INSIDE_H
#define BZ_BATCH_INSIDE_H

#include "bezel_batch.h"
#include "session/batch_canvas.h"
#include "session/model.h"
#include "session/session.h"

enum { BZ_BATCH_BUCKETS = 4 }; /* sizes of a pass */

typedef enum slot_state { SLOT_FREE, SLOT_PREFILL, SLOT_DECODE } slot_state;

/* A place for a sequence. */
typedef struct batch_slot {
    slot_state state;
    bz_kv *kv;
    bz_sampler *sampler;
    uint64_t seed;
    uint32_t max_tokens, made;
    bool ignore_end;

    int32_t *tokens;    /* [context] what the caches hold, then what is still to be read */
    uint32_t n, wanted; /* held; of the prompt */
    uint32_t ring_from; /* lowest position whose ring rows are still there */
    uint32_t shared;    /* of the prompt, as many tokens as the one before has too */

    bz_snapshot *rings; /* of the shared prefix; allocated on first use */
    uint32_t rings_at;  /* 0: none */
} batch_slot;

struct bz_batch {
    const bz_model *model;
    bz_canvas_batch *canvas; /* of a diffusion model: does all of it; NULL: none */
    bz_backend *backend;
    uint32_t context, chunk, window, vocab;
    batch_slot slots[BZ_BATCH_MAX_SLOTS];
    uint32_t n_slots;
    session_plan one[BZ_BATCH_BUCKETS], many; /* one row of logits; all 8 rows */
    int32_t *last;                            /* [n_last] the prompt begun last */
    uint32_t n_last;
    uint64_t reused;

    /* the pass at work */
    enum { NO_PASS, PREFILL_PASS, DECODE_PASS } pass;
    session_plan *running;
    uint32_t active[BZ_BATCH_MAX_SLOTS], n_active; /* slots in it, in order of their rows */
    uint32_t end;                                  /* of the prefilled slot, behind it */
    bz_rows rows;
    int32_t id[BZ_MAX_CHUNK], pos[BZ_MAX_CHUNK];
    uint32_t seq[BZ_MAX_CHUNK], out[BZ_MAX_CHUNK];
    void *kv[BZ_BATCH_MAX_SLOTS];
};

#endif
