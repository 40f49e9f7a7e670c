/* One sequence of tokens: its caches, the plans that extend them, and snapshots to return to.
 *
 * session.c creates and frees, pass.c computes, prefix.c and rewind.c go back, media_rows.c has
 * images and audio, recover.c handles a lost device; prefill.c, generate.c, diffuse.c and
 * canvas_logits.c are the jobs. */
#ifndef BZ_SESSION_H
#define BZ_SESSION_H

#include "session/adapter.h"
#include "session/media.h"
#include "session/model.h"
#include "session/pace.h"
#include "plan/backend.h"
#include "sample/sampler.h"
#include "session/prefix.h"
#include "text/tokenizer.h"

enum { BZ_MAX_CHUNK = 512, BZ_SMALL_CHUNK = 64 }; /* prompt tokens per pass; when memory is short */
enum { BZ_MAX_ROWS = 1120 }; /* of a pass: an image read in one pass may be longer than a chunk */
enum { BZ_BUCKETS = 5 };     /* sizes of a pass for which plans are recorded */
enum { BZ_AHEAD = 4 };       /* passes in flight on a device */
/* Passes of at most this many rows compute the same bits as one row at a time. */
enum { BZ_BIT_EQUAL_ROWS = 8 };
enum { BZ_MAX_DRAFTS = BZ_BIT_EQUAL_ROWS - 1 }; /* verified by one pass */

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

/* An image or audio among the tokens. */
typedef struct session_span {
    uint32_t first; /* position of its first row */
    bz_media *media;
} session_span;

struct bz_session {
    const bz_model *model;
    bz_adapter_set *adapters;   /* NULL: none */
    bz_session_options options; /* device side: exact, no_fuse, threads, kernels, kv */
    bz_cache_type cache_type;
    bz_backend *backend;        /* NULL: the device was lost; the next job looks for another */
    const bz_gpu_model *device; /* on a GPU: where back end and caches are */
    bz_kv *kv;
    void *kv_list[1]; /* sequences of a pass: this one */
    uint32_t context, chunk;
    uint32_t image_rows; /* of the largest image read in one pass, which the rings are long enough
                            for; 0: a chunk suffices */

    int32_t *tokens;     /* [context] what the caches hold */
    uint16_t *pass_rows; /* [context] at the first row of a pass, how many rows it had; 0: in the
                            same pass as the row before */
    uint32_t n;          /* tokens held */
    session_span *spans; /* [n_spans] by position; the tokens of their rows are numbers below zero
                            (bz_media_token) */
    uint32_t n_spans;
    bz_rings rings;

    session_plan plans[2][BZ_BUCKETS];          /* [one row of logits | all rows][bucket] */
    session_plan canvas_plans[BZ_CANVAS_PLANS]; /* of a diffusion model */
    session_plan draft_plans[BZ_MAX_DRAFTS];    /* of the drafter, by drafts - 1 */
    session_plan verify_plans[BZ_MAX_DRAFTS];   /* of passes that end in a short list for every row,
                                                   by rows - 2 */

    /* The current pass: its parameters, and the arrays they point to. */
    bz_rows rows;
    int32_t pos[BZ_MAX_ROWS];
    uint32_t seq[BZ_MAX_ROWS], out[BZ_MAX_ROWS];
    int32_t id[BZ_MAX_ROWS], block_first[BZ_MAX_ROWS],
        block_last[BZ_MAX_ROWS]; /* of a pass with rows of media */
    const float *soft[BZ_MAX_ROWS];
    session_plan *running;
    uint32_t first; /* position of its first row */

    /* Positions whose states, after the model's last norm, the back end holds: a drafter begins
     * with the last one. */
    uint32_t state_first, state_rows;
    int32_t draft_angle; /* bz_rows.angle of the drafter's pass */

    float *logits; /* [vocabulary] after the last token */
    bool has_logits;
    bool logits_on_device; /* a short list was read instead; the last token can be fed again */

    /* Passes that end in a short list (bz_session_send). */
    uint32_t ahead;  /* in flight at most; 1: one at a time, 0: rows of logits are read instead */
    uint32_t sent;   /* in flight */
    int32_t sent_id; /* the token of the oldest */
    /* Tests: makes the device's request differ from what the host chooses by. */
    void (*test_override)(bz_topk_request *request, double *u);

    bz_sampler *sampler;
    bool busy; /* it has a job */

    /* Continuing on another device (recover.c). */
    bool recomputing;       /* the tokens held are computed again; */
    uint32_t recomputed;    /* of them, already computed */
    bool in_recompute_pass; /* a pass for that is in flight */
    bool lost;              /* the device was lost during this job, at lost_at tokens */
    uint32_t lost_at;

    bz_session_stats stats;
    bz_draft_stats draft_stats;
    bz_draft_pace draft_pace[2]; /* of look-up, of the drafter */
};

/* attach: creates back end and caches on the model's device; nothing is computed yet. detach: frees
 * everything there; the session keeps its tokens. */
bz_status bz_session_attach(bz_session *s, bz_error *err);
void bz_session_detach(bz_session *s);

/* Gives a session the adapters of another one of its model; it forgets its tokens. */
bz_status bz_session_share_adapters(bz_session *s, const bz_session *from, bz_error *err);

/* A sampler for this model, which never chooses tokens that its file suppresses. */
bz_status bz_model_sampler(const bz_model *model, uint32_t context, bz_sampler **out,
                           bz_error *err);

/* Rewinds to the longest prefix of `ids` [n] that can be continued from and returns its length. It
 * is less than n, because the last token is computed again for its logits, except with a diffusion
 * model, whose prompt has none. */
uint32_t bz_session_rewind(bz_session *s, const int32_t *ids, uint32_t n);

/* Starts a pass over ids [count], count <= chunk, after the tokens held. PASS_MORE: no logits, and
 * another pass follows. */
typedef enum pass_logits { PASS_NONE, PASS_MORE, PASS_LAST, PASS_ALL } pass_logits;
bz_status bz_session_pass(bz_session *s, const int32_t *ids, uint32_t count, pass_logits logits,
                          bz_error *err);
/* A step of it. When DONE the tokens belong to the session and, with PASS_LAST or PASS_ALL,
 * s->logits holds the last row. */
bz_pass_state bz_session_pass_step(bz_session *s, bz_error *err);
/* A step of a PASS_ALL whose rows after the first are guesses. When DONE the first token belongs to
 * the session. take_row: so do the tokens up to `row`; s->logits holds that row. */
bz_pass_state bz_session_verify_step(bz_session *s, bz_error *err);
bz_status bz_session_take_row(bz_session *s, uint32_t row, bz_error *err);
/* The same for positions from `first` <= s->n on, whose tokens are in s->tokens already, with the
 * kernels of a pass of `like` >= count rows. */
bz_status bz_session_start_pass(bz_session *s, uint32_t first, uint32_t count, uint32_t like,
                                pass_logits logits, bz_error *err);
/* After a pass of `count` rows found no memory: true if smaller chunks are possible, which are used
 * from now on. */
bool bz_session_shrink_chunk(bz_session *s, uint32_t count);
/* All rows of logits of the pass; valid until the next pass. */
const float *bz_session_pass_logits(const bz_session *s);

/* Images and audio among the tokens (media_rows.c). Some models read an image in one pass, in which
 * its rows attend to each other: such an image is called a block. */
bool bz_session_has_blocks(const bz_session *s);
/* The session owns the spans from now on. */
void bz_session_take_spans(bz_session *s, session_span *spans, uint32_t n);
void bz_spans_free(session_span *spans, uint32_t n);
/* Makes the rings long enough for the blocks; if they were not, the tokens held are dropped. */
bz_status bz_session_reserve_blocks(bz_session *s, const session_span *spans, uint32_t n,
                                    bz_error *err);
/* After a failure for lack of memory: makes the rings short again. */
void bz_session_release_blocks(bz_session *s);
/* Rows from `first` on that a pass takes: at most `count`, unless a block begins at `first`. */
uint32_t bz_session_fit_pass(const bz_session *s, uint32_t first, uint32_t count);
/* The last position up to `pos` that is not inside a block. */
uint32_t bz_session_before_block(const bz_session *s, uint32_t pos);
/* Fills in the rows of media of a pass that begins at `first`. */
void bz_session_fill_soft(bz_session *s, bz_rows *rows, uint32_t first);
/* A prefill with the numbers of media in ids [n]. Takes the spans, also if it fails. */
bz_status bz_session_prefill_spans(bz_session *s, const int32_t *ids, size_t n, session_span *spans,
                                   uint32_t n_spans, const bz_prefill_options *options,
                                   bz_job **job, bz_error *err);

/* A pass's state as progress of its job; never DONE. */
bz_progress bz_session_progress(bz_session *s, bz_pass_state state, bz_need *need);

/* Passes of one token that end in a short list, on back ends that have them.
 * send: feeds `id` after the passes in flight; -1: the token that the pass before it chose. `u` is
 * the random number of the choice after it. `request`, unless NULL, is for this pass and later
 * ones. DONE: it is in flight. WAIT: try again later. receive: the token of the oldest pass belongs
 * to the session; *guess is what the device continued with. forget: discards all passes in flight.
 */
bz_pass_state bz_session_send(bz_session *s, int32_t id, const bz_topk_request *request, double u,
                              bz_error *err);
bz_pass_state bz_session_receive(bz_session *s, bz_shortlist *list, int32_t *guess, bz_error *err);
void bz_session_forget(bz_session *s);
/* Starts getting the logits after the last token into s->logits: they are read, as row `row` of the
 * pass received last, if that was the last one sent (`there`), else computed again. Continue with
 * bz_session_pass_step; the tokens held stay the same. */
bz_status bz_session_row(bz_session *s, bool there, uint32_t row, bz_error *err);
/* A pass over the token at s->n and the guesses after it; it ends in a short list for each. They
 * are in s->tokens, or with BZ_FEED_DRAFTS the guesses are those of bz_session_send_drafts. u: the
 * random numbers of the choices. receive: when DONE all are in s->tokens, and the first belongs to
 * the session. Back ends that send only. */
bz_pass_state bz_session_send_rows(bz_session *s, uint32_t count, bz_feed feed,
                                   const bz_topk_request *request, const double *u, bz_error *err);
bz_pass_state bz_session_receive_rows(bz_session *s, bz_shortlist *lists, bz_error *err);

/* The model's drafter (drafter.c). can_draft: the state before the token at s->n is there. start:
 * a pass that drafts `count` tokens after that token, which is in s->tokens; step: when DONE they
 * follow it there. send_drafts: the same pass, whose drafts stay on the device for
 * bz_session_send_rows. */
bool bz_session_can_draft(const bz_session *s);
bz_status bz_session_start_draft(bz_session *s, uint32_t count, bz_error *err);
bz_pass_state bz_session_draft_step(bz_session *s, bz_error *err);
bz_pass_state bz_session_send_drafts(bz_session *s, uint32_t count, bz_error *err);

/* Keeps a snapshot at position s->n, if there is memory. */
void bz_session_keep_snapshot(bz_session *s);

#endif
