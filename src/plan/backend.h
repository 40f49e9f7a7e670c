/* What sessions and encoders need from a back end; implemented by cpu/ and gpu/.
 *
 * Nothing here blocks for long: `step` works until a deadline and reports whether the pass
 * is finished. A back end belongs to one session or encoder and is used by one thread at a time.
 */
#ifndef BZ_PLAN_BACKEND_H
#define BZ_PLAN_BACKEND_H

#include "plan/plan.h"
#include "sample/shortlist.h"

typedef enum bz_pass_state {
    BZ_PASS_AGAIN, /* the deadline passed: call again */
    BZ_PASS_WAIT,  /* nothing to compute until the device has finished something */
    BZ_PASS_BYTES, /* nothing to compute until the back end's reads are done */
    BZ_PASS_DONE,
    BZ_PASS_ERROR
} bz_pass_state;

/* Called after each step with output number `output` (0 or 1) of it: f32 (or int32 for ids)
 * [rows][cols], rows `stride` values apart. `values` is valid during the call only. */
typedef void (*bz_trace)(void *user, const bz_step *step, int output, const void *values,
                         uint32_t rows, uint32_t cols, uint32_t stride);

typedef struct bz_backend bz_backend;
typedef struct bz_kv bz_kv;             /* the caches of one sequence */
typedef struct bz_schedule bz_schedule; /* a plan lowered for this back end */
typedef struct bz_snapshot bz_snapshot;

/* What the rows of a pass embed: rows->id, or without the host knowing it what the device has
 * chosen. */
typedef enum bz_feed {
    BZ_FEED_IDS,
    BZ_FEED_CHOICE, /* the token chosen in the pass sent before; passes of one row */
    BZ_FEED_DRAFTS  /* rows->id[0], then the drafts sent before */
} bz_feed;

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
    /* How much of the pass begun last is done, in steps or dispatches. */
    void (*progress)(const bz_backend *b, uint64_t *done, uint64_t *total);
    /* After BYTES: the reads that the pass waits for; returns their count. NULL where a back end
     * never reads. */
    uint32_t (*reads)(bz_backend *b, bz_read reads[BZ_MAX_READS]);
    /* The pass begun last is abandoned: `step` is not called for it again. May be NULL. */
    void (*stop)(bz_backend *b);
    /* Of tables that stay in the file: rows found in memory and rows read. NULL: there are none. */
    void (*table_use)(const bz_backend *b, uint64_t *hits, uint64_t *misses);
    /* Traces the passes begun from now on; NULL ends it. Not while a pass is in flight. The GPU
     * runs them unfused, step by step; passes that are sent (below) are not traced there. */
    void (*set_trace)(bz_backend *b, bz_trace trace, void *user);

    /* Passes of one row, or of plans with many_sequences, that end in a shortlist for each row
     * instead of logits. All seven are NULL where logits are in host memory anyway. Several passes
     * may be in flight; their lists are received in the order of sending.
     *
     * set_topk: what the passes sent from now on produce for rows of a sequence.
     * send: DONE when the pass is in flight, WAIT when it cannot be sent yet (call again). u:
     *   [rows->n_out] the random number of each choice. `rows` is read during the call only.
     * send_drafts: the same for a drafter's pass (bz_plan.drafts), of which nothing is received.
     * receive: of the oldest pass in flight, the lists [n_out], the tokens that the device chose
     *   and those that the rows embedded (NULL: not wanted).
     * discard: passes in flight run to their end, but their lists are never received.
     * begin_logits: instead of begin, to read the logits of the pass received last, if no pass was
     *   sent since.
     * can_run_ahead: whether the device can embed its own choice, or drafts. */
    bz_status (*set_topk)(bz_backend *b, const bz_schedule *schedule, const bz_kv *kv,
                          const bz_topk_request *request, bz_error *err);
    bz_pass_state (*send)(bz_backend *b, bz_schedule *schedule, const bz_rows *rows, bz_feed feed,
                          const double *u, bz_error *err);
    bz_pass_state (*send_drafts)(bz_backend *b, bz_schedule *schedule, const bz_rows *rows,
                                 bz_error *err);
    bz_pass_state (*receive)(bz_backend *b, bz_shortlist *lists, int32_t *choices, int32_t *fed,
                             bz_error *err);
    void (*discard)(bz_backend *b);
    void (*begin_logits)(bz_backend *b);
    bool (*can_run_ahead)(const bz_backend *b);

    /* The caches of a sequence. A pass may have rows of several sequences if each was made `beside`
     * another of them. Rings have `slack` rows more than the window, so that all rows of a chunk
     * can be written before they attend. Growing keeps the contents. */
    bz_status (*kv_new)(bz_backend *b, const bz_cache_info *caches, uint32_t n, bz_cache_type type,
                        uint32_t slack, const bz_kv *beside, bz_kv **out, bz_error *err);
    void (*kv_free)(bz_backend *b, bz_kv *kv);
    bz_status (*kv_reserve)(bz_backend *b, bz_kv *kv, uint32_t positions, bz_error *err);
    /* Copies positions [begin, end) of full caches, and of rings as many rows before `end` as the
     * window has, one more than the next token needs, so that the last one can be fed again;
     * between sequences of one model on one device; `to` has a capacity of `end` positions. */
    void (*kv_copy)(bz_kv *to, const bz_kv *from, uint32_t begin, uint32_t end);
    /* Full caches up to `end` and rings from `begin` on, packed, for a file: how many bytes;
     * written in pieces to `put`, which may fail; read back. NULL where the caches are not in
     * memory. */
    uint64_t (*kv_saved_bytes)(const bz_kv *kv, uint32_t begin, uint32_t end);
    bool (*kv_save)(const bz_kv *kv, uint32_t begin, uint32_t end,
                    bool (*put)(void *user, const void *bytes, size_t n), void *user);
    void (*kv_load)(bz_kv *kv, uint32_t begin, uint32_t end, const uint8_t *bytes);
    uint64_t (*kv_bytes)(const bz_kv *kv);
    /* Rows of the smallest ring; UINT32_MAX without rings. */
    uint32_t (*kv_ring_rows)(const bz_kv *kv);

    /* A snapshot is a copy of the window's rows before one position of every ring, so that the
     * sequence can later be continued from there. An object can be saved to again. */
    bz_snapshot *(*snapshot_new)(const bz_kv *kv); /* NULL: out of memory */
    void (*snapshot_free)(bz_snapshot *snapshot);
    void (*snapshot_save)(bz_snapshot *snapshot, const bz_kv *kv, uint32_t pos);
    void (*snapshot_restore)(const bz_snapshot *snapshot, bz_kv *kv);
    /* Both are of sequences as kv_copy copies between, `to` of kv. */
    void (*snapshot_copy)(bz_snapshot *to, const bz_snapshot *from, const bz_kv *kv);
    /* Its bytes, for a file; NULL as above. */
    uint8_t *(*snapshot_bytes)(bz_snapshot *snapshot, const bz_kv *kv, size_t *n);
    void (*snapshot_set_pos)(bz_snapshot *snapshot, uint32_t pos);
};

#endif
