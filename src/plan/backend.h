/* What sessions and encoders need from a back end. cpu/ and gpu/ implement it.
 *
 * Nothing here blocks for long: `step` works until a deadline and says whether the pass
 * is finished. A back end serves one of them and is used by one thread at a time.
 */
#ifndef BZ_PLAN_BACKEND_H
#define BZ_PLAN_BACKEND_H

#include "plan/plan.h"
#include "sample/shortlist.h"

/* WAIT: nothing to compute until the device has answered. BYTES: until the back end's reads are
 * done. */
typedef enum bz_pass_state {
    BZ_PASS_AGAIN,
    BZ_PASS_WAIT,
    BZ_PASS_BYTES,
    BZ_PASS_DONE,
    BZ_PASS_ERROR
} bz_pass_state;

/* Called after a step with the rows it wrote: f32 (or int32 for ids) [rows][cols], rows
 * `stride` values apart. Valid during the call only. */
typedef void (*bz_trace)(void *user, const bz_step *step, int output, const void *values,
                         uint32_t rows, uint32_t cols, uint32_t stride);

typedef struct bz_backend bz_backend;
typedef struct bz_kv bz_kv;             /* the caches of one sequence */
typedef struct bz_schedule bz_schedule; /* a plan made ready to run */
typedef struct bz_snapshot bz_snapshot;

struct bz_backend {
    const char *name;
    void (*free)(bz_backend *b);

    /* The plan must outlive the schedule. */
    bz_status (*prepare)(bz_backend *b, const bz_plan *plan, bz_schedule **out, bz_error *err);
    void (*release)(bz_backend *b, bz_schedule *schedule);

    /* One pass. `rows` and what it points to stay unchanged until the pass is done. */
    void (*begin)(bz_backend *b, bz_schedule *schedule, const bz_rows *rows);
    bz_pass_state (*step)(bz_backend *b, uint64_t deadline, bz_error *err);
    /* The output tensor of the finished pass, [n_out][cols]; valid until the next begin. */
    const float *(*output)(bz_backend *b, const bz_schedule *schedule);
    /* How much of the pass begun last is done, in steps or the like. */
    void (*progress)(const bz_backend *b, uint64_t *done, uint64_t *total);
    /* What a pass (begun or being sent) waits for, after BYTES; returns how many. NULL where
     * nothing ever is. */
    uint32_t (*reads)(bz_backend *b, bz_read reads[BZ_MAX_READS]);
    /* Nobody works on the pass any more; NULL where that is no news. */
    void (*stop)(bz_backend *b);
    /* Of tables that stay in the file: rows that were there and rows fetched. NULL: none does. */
    void (*table_use)(const bz_backend *b, uint64_t *hits, uint64_t *misses);
    void (*set_trace)(bz_backend *b, bz_trace trace, void *user);

    /* Passes of one row that end in a short list instead of logits; NULL, all of them, where rows
     * of logits are at hand anyway. Several may be under way; what they leave is received in the
     * order of sending.
     *
     * choose: what the passes sent from now on shall leave. send: DONE when the pass is under way,
     * WAIT when it cannot be yet (call again). With `own` the token is the one that the pass sent
     * before chose, and rows->id is not looked at; u is what that choice is drawn with. `rows` is
     * read during the call only. receive: the list of the oldest pass under way and the token that
     * the device would go on with. forget: passes under way run to their end, but nobody waits for
     * them. begin_row: instead of begin, to read the logits of the pass received last, if none was
     * sent since. runs_ahead: can the device feed its own tokens? */
    bz_status (*choose)(bz_backend *b, const bz_schedule *schedule, const bz_topk_request *request,
                        bz_error *err);
    bz_pass_state (*send)(bz_backend *b, bz_schedule *schedule, const bz_rows *rows, bool own,
                          double u, bz_error *err);
    bz_pass_state (*receive)(bz_backend *b, bz_shortlist *list, int32_t *guess, bz_error *err);
    void (*forget)(bz_backend *b);
    void (*begin_row)(bz_backend *b);
    bool (*runs_ahead)(const bz_backend *b);

    /* Caches. Rings hold `slack` rows more than the window, so that a chunk can be written
     * before its rows attend. Growing keeps what is stored. */
    bz_status (*kv_new)(bz_backend *b, const bz_cache_info *caches, uint32_t n, bool f32,
                        uint32_t slack, bz_kv **out, bz_error *err);
    void (*kv_free)(bz_backend *b, bz_kv *kv);
    bz_status (*kv_reserve)(bz_backend *b, bz_kv *kv, uint32_t positions, bz_error *err);
    uint64_t (*kv_bytes)(const bz_kv *kv);
    uint32_t (*kv_ring_rows)(
        const bz_kv *kv); /* rows of the smallest ring; UINT32_MAX without rings */

    /* A snapshot keeps the window's rows before one position of every ring, so that the
     * sequence can later be continued from there. One snapshot object is reused. */
    bz_snapshot *(*snapshot_new)(const bz_kv *kv); /* NULL: out of memory */
    void (*snapshot_free)(bz_snapshot *snapshot);
    void (*snapshot_save)(bz_snapshot *snapshot, const bz_kv *kv, uint32_t pos);
    void (*snapshot_restore)(const bz_snapshot *snapshot, bz_kv *kv);
};

#endif
