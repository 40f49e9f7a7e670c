/* One timeline of tokens: the caches, the plans that extend them, and ways back. */
#ifndef BZ_SESSION_H
#define BZ_SESSION_H

#include "session/media.h"
#include "session/model.h"
#include "plan/backend.h"
#include "sample/sampler.h"
#include "text/tokenizer.h"

enum { BZ_MAX_CHUNK = 512, BZ_LESS_CHUNK = 64, BZ_MAX_SNAPSHOTS = 16 };
enum {
    BZ_MAX_ROWS = 1120,
    BZ_BUCKETS = 5
};                     /* of a pass: a picture that must be in one may be longer than a chunk */
enum { BZ_AHEAD = 4 }; /* passes a device may have under way */

/* Passes over a canvas: see model/diffusion.h. */
typedef enum canvas_pass {
    CANVAS_DENOISE,
    CANVAS_LOGITS,
    CANVAS_CONDITION,
    BZ_CANVAS_PLANS
} canvas_pass;

/* A recorded plan and its schedule, made when first needed. */
typedef struct session_plan {
    bz_plan *plan;
    bz_schedule *schedule;
} session_plan;

typedef struct session_snapshot {
    bz_snapshot *rings; /* allocated on first use */
    uint32_t pos;       /* tokens before it; 0: unused */
    uint64_t used;      /* a clock, for replacing the one unused longest */
} session_snapshot;

/* A picture or sound among the tokens. */
typedef struct session_span {
    uint32_t first; /* position of its first row */
    bz_media *media;
} session_span;

struct bz_session {
    const bz_model *model;
    bz_session_options options; /* device side: exact, no_fuse, threads, kernels */
    bz_backend *backend;        /* NULL: the device was lost; the next job looks for another */
    const bz_gpu_model *device; /* on a GPU: where back end and caches are */
    bz_kv *kv;
    void *kv_list[1]; /* sequences of a pass: this one */
    uint32_t context, chunk, window;
    uint32_t
        picture; /* rows of the largest that must be in one pass, for which rings are long enough */

    int32_t *tokens;     /* [context] what the caches hold */
    uint16_t *pass_rows; /* [context] at the first row of a pass, how many it had; 0: in the same
                            pass as the row before */
    uint32_t n;          /* how many tokens */
    session_span *spans; /* [n_spans] by position; their rows' tokens are numbers below zero
                            (bz_media_token) */
    uint32_t n_spans;
    uint32_t ring_from; /* lowest position whose ring rows are still there */

    session_snapshot snapshots[BZ_MAX_SNAPSHOTS];
    uint32_t n_snapshots;
    uint64_t clock;

    session_plan plans[2][BZ_BUCKETS];          /* [one row of logits | all rows][bucket] */
    session_plan canvas_plans[BZ_CANVAS_PLANS]; /* of a diffusion model */

    /* the pass being run: its parameter block and memory */
    bz_rows rows;
    int32_t pos[BZ_MAX_ROWS];
    uint32_t seq[BZ_MAX_ROWS], out[BZ_MAX_ROWS];
    int32_t id[BZ_MAX_ROWS], block_first[BZ_MAX_ROWS],
        block_last[BZ_MAX_ROWS]; /* with rows that are no tokens */
    const float *soft[BZ_MAX_ROWS];
    session_plan *running;
    uint32_t first; /* position of its first row */

    float *logits; /* [vocabulary] after the last token */
    bool has_logits;
    bool logits_on_device; /* it has none because a list was read instead: the last token can be fed
                              again */

    /* Passes sent that end in a short list (bz_session_send). */
    uint32_t ahead;  /* most at once; 1: step by step, 0: rows of logits are read instead */
    uint32_t sent;   /* under way */
    int32_t sent_id; /* the token of the oldest */
    void (*test_override)(
        bz_topk_request *request,
        double *u); /* tests: what the device is told differs from what the host does */

    bz_sampler *sampler;
    bool busy; /* a job is at work */

    /* Going on on another device (recover.c). */
    bool recomputing;       /* tokens are computed again; first `returned` of them are */
    bool in_recompute_pass; /* a pass of that is under way */
    uint32_t recomputed;
    bool lost; /* during this job, when it held lost_at tokens */
    uint32_t lost_at;

    bz_session_stats stats;
};

/* Back end and caches on the device that the model is on; nothing is computed yet. detach lets go
 * of everything there; the session still knows its tokens. */
bz_status bz_session_attach(bz_session *s, bz_error *err);
void bz_session_detach(bz_session *s);

/* Chooses tokens of this model, never those that its file suppresses. */
bz_status bz_model_sampler(const bz_model *model, uint32_t context, bz_sampler **out,
                           bz_error *err);

/* Rewinds to the longest prefix of `ids` that can be continued from and returns its length: less
 * than n, as the last token is computed again for its logits, which a diffusion model's prompt has
 * none of. */
uint32_t bz_session_rewind(bz_session *s, const int32_t *ids, uint32_t n);

/* Starts a pass over ids (count <= chunk) behind what the session holds. */
typedef enum pass_logits { PASS_NONE, PASS_LAST, PASS_ALL } pass_logits;
bz_status bz_session_pass(bz_session *s, const int32_t *ids, uint32_t count, pass_logits logits,
                          bz_error *err);
/* Works on it; when DONE the tokens belong to the session and, with PASS_LAST or PASS_ALL,
 * s->logits holds the last row. */
bz_pass_state bz_session_pass_step(bz_session *s, bz_error *err);
/* The same for positions from `first` <= s->n on, whose tokens are in s->tokens already, by the
 * kernels that a pass of `like` >= count rows has. */
enum {
    BZ_FEW_ROWS = 8
}; /* one by one or up to so many together, numbers are the same to the bit */
bz_status bz_session_start_pass(bz_session *s, uint32_t first, uint32_t count, uint32_t like,
                                pass_logits logits, bz_error *err);
/* For want of memory: can it be done with fewer rows per pass than this many? Then it is, from now
 * on. */
bool bz_session_take_less(bz_session *s, uint32_t count);
const float *
bz_session_pass_logits(const bz_session *s); /* all rows asked for; until the next pass */

/* Pictures and sounds among the tokens (soft.c). take: from now on these are the session's; it owns
 * them. fit: how many rows from `first` on a pass takes, at most `count` unless a picture that must
 * be in one pass begins there. before: the last position from `pos` down that is not inside such a
 * picture. fill: the pass's rows that are no tokens. */
void bz_session_take_spans(bz_session *s, session_span *spans, uint32_t n);
/* For pictures that must be in one pass and are longer than a chunk: longer rings, and everything
 * is computed anew. */
bz_status bz_session_make_room(bz_session *s, const session_span *spans, uint32_t n, bz_error *err);
/* There was no memory: what was made longer for a picture goes, so that other prompts have room as
 * before. */
void bz_session_give_room(bz_session *s);
void bz_spans_free(session_span *spans, uint32_t n);
uint32_t bz_session_fit_pass(const bz_session *s, uint32_t first, uint32_t count);
uint32_t bz_session_before_block(const bz_session *s, uint32_t pos);
void bz_session_fill_soft(bz_session *s, bz_rows *rows, uint32_t first);
bool bz_session_has_blocks(const bz_session *s); /* does the model see pictures whole? */
/* A prefill whose ids hold numbers of media already; takes the spans, also if it fails. */
bz_status bz_session_prefill_spans(bz_session *s, const int32_t *ids, size_t n, session_span *spans,
                                   uint32_t n_spans, const bz_prefill_options *options,
                                   bz_job **job, bz_error *err);

/* Starts a pass of a diffusion model behind what the session holds; goes on with the back end's own
 * step. Of s->rows the caller has filled in n_out, out and what the pass is about; ids [canvas]
 * belong to the caller. */
bz_status bz_session_canvas_pass(bz_session *s, canvas_pass kind, const int32_t *ids,
                                 bz_error *err);

/* A pass's state as that of its job; DONE does not occur. */
bz_progress bz_session_progress(bz_session *s, bz_pass_state state, bz_need *need);

/* Passes of one token that end in a short list, on back ends that have them. send: `id` goes to the
 * position behind those under way; -1: the token that the pass before chose. u is for the choice
 * that follows it. With `request`, that is what this pass and later ones shall leave. DONE: it is
 * under way. WAIT: later. receive: the oldest pass's token belongs to the session; *guess is what
 * the device went on with. forget: all under way are as if never sent. */
bz_pass_state bz_session_send(bz_session *s, int32_t id, const bz_topk_request *request, double u,
                              bz_error *err);
bz_pass_state bz_session_receive(bz_session *s, bz_shortlist *list, int32_t *guess, bz_error *err);
void bz_session_forget(bz_session *s);
/* Starts getting the row behind the last token into s->logits: read, if the pass received last was
 * the last one sent (`there`), else computed again. Goes on with bz_session_pass_step; the tokens
 * held stay the same. */
bz_status bz_session_row(bz_session *s, bool there, bz_error *err);

/* Keeps a way back to position s->n. Best effort: without memory there is none. */
void bz_session_keep_snapshot(bz_session *s);

#endif
