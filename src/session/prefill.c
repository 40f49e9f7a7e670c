/* The job that makes a session hold a prompt: what is held already is kept, the rest computed in
 * chunks. */
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "session/job.h"
#include "session/recover.h"
#include "session/session.h"

typedef struct prefill_job {
    bz_job job;
    bz_session *s;
    int32_t *ids;
    uint32_t n;
    session_span *spans; /* until the session takes them */
    uint32_t n_spans;
    bz_prefill_options options;
    bool started; /* rewound */
    bool in_pass;
    uint32_t first; /* position of the pass's first row */
    pass_logits logits;
    enum { NO_EVENT, LOGITS_EVENT, PROGRESS_EVENT } due; /* logits first, then progress */
} prefill_job;

static void free_prefill(bz_job *job)
{
    prefill_job *j = (prefill_job *)(void *)job;
    bz_session_end_job(j->s);
    bz_spans_free(j->spans, j->n_spans);
    free(j->ids);
    free(j);
}

static bz_progress start_chunk(prefill_job *j, bz_need *need)
{
    bz_session *s = j->s;
    uint32_t end = j->n, snapshot = j->options.snapshot_at;
    if (snapshot > s->n && snapshot < end) {
        end = snapshot; /* a chunk ends where the snapshot is taken */
    }
    uint32_t count = bz_session_fit_pass(s, s->n, end - s->n < s->chunk ? end - s->n : s->chunk);
    j->first = s->n;
    j->logits = j->options.logits == BZ_LOGITS_ALL ? PASS_ALL
                : s->n + count < j->n              ? PASS_MORE
                : s->model->text.config.canvas     ? PASS_NONE /* the encoder has no logits */
                                                   : PASS_LAST;
    bz_status status = bz_session_pass(s, j->ids + s->n, count, j->logits, &need->error);
    if (status == BZ_OUT_OF_MEMORY && bz_session_shrink_chunk(s, count)) {
        return BZ_JOB_AGAIN;
    }
    j->in_pass = status == BZ_OK;
    return j->in_pass ? BZ_JOB_AGAIN : BZ_JOB_ERROR;
}

static bz_progress work_prefill(bz_job *job, bz_need *need)
{
    prefill_job *j = (prefill_job *)(void *)job;
    bz_session *s = j->s;
    if (j->due == LOGITS_EVENT) {
        j->due = PROGRESS_EVENT;
        need->event = (bz_event){.kind = BZ_EVENT_LOGITS,
                                 .logits = bz_session_pass_logits(s),
                                 .position = j->first,
                                 .rows = s->n - j->first};
        return BZ_JOB_EVENT;
    }
    if (j->due == PROGRESS_EVENT) {
        j->due = NO_EVENT;
        need->event = (bz_event){.kind = BZ_EVENT_PROGRESS, .done = s->n, .total = j->n};
        return BZ_JOB_EVENT;
    }
    if (!j->in_pass) {
        return s->n == j->n ? BZ_JOB_DONE : start_chunk(j, need);
    }
    bz_pass_state state = bz_session_pass_step(s, &need->error);
    if (state != BZ_PASS_DONE) {
        return bz_session_progress(s, state, need);
    }
    j->in_pass = false;
    s->stats.prefilled += s->n - j->first;
    if (s->n == j->options.snapshot_at) {
        bz_session_keep_snapshot(s);
    }
    j->due = j->logits == PASS_ALL ? LOGITS_EVENT : PROGRESS_EVENT;
    return BZ_JOB_AGAIN;
}

/* The pass in flight is lost: its chunk starts again. So does one whose logits were not reported
 * yet. */
static void restart_prefill(bz_job *job)
{
    prefill_job *j = (prefill_job *)(void *)job;
    j->in_pass = false;
    if (j->due == LOGITS_EVENT) {
        j->due = NO_EVENT;
        j->s->stats.prefilled -= j->s->n - j->first;
        j->s->n = j->first;
        j->s->has_logits = j->s->logits_on_device = false;
    }
}

static bz_progress step_prefill(bz_job *job, bz_need *need)
{
    prefill_job *j = (prefill_job *)(void *)job;
    bz_session *s = j->s;
    if (!j->started) {
        if (bz_session_reserve_blocks(s, j->spans, j->n_spans, &need->error) != BZ_OK) {
            return BZ_JOB_ERROR;
        }
        j->started = true;
        bz_session_take_spans(s, j->spans, j->n_spans);
        j->spans = NULL;
        j->n_spans = 0;
        s->stats.reused += bz_session_rewind(s, j->ids, j->n);
        if (s->n == j->options.snapshot_at) {
            bz_session_keep_snapshot(s);
        }
    }
    const bz_progress p = bz_session_work(s, job, work_prefill, restart_prefill, need);
    if (p == BZ_JOB_ERROR && need->error.code == BZ_OUT_OF_MEMORY) {
        bz_session_release_blocks(s);
    }
    return p;
}

bz_status bz_session_prefill_spans(bz_session *s, const int32_t *ids, size_t n, session_span *spans,
                                   uint32_t n_spans, const bz_prefill_options *options,
                                   bz_job **out, bz_error *err)
{
    bz_status status = BZ_OK;
    if (s->busy) {
        status = bz_fail(err, BZ_BAD_REQUEST, "The session is busy with another job.");
    } else if (n == 0) {
        status = bz_fail(err, BZ_BAD_REQUEST, "There are no tokens to prefill.");
    } else if (n > s->context) {
        status = bz_fail(err, BZ_CONTEXT_FULL, "The prompt has %zu tokens; the context holds %u.",
                         n, s->context);
    }
    prefill_job *j = status == BZ_OK ? calloc(1, sizeof *j) : NULL;
    int32_t *copy = status == BZ_OK ? malloc(n * sizeof *copy) : NULL;
    if (!j || !copy) {
        free(j);
        free(copy);
        bz_spans_free(spans, n_spans);
        return status != BZ_OK
                   ? status
                   : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a prompt of %zu tokens.", n);
    }
    memcpy(copy, ids, n * sizeof *copy);
    *j = (prefill_job){.job = {.step = step_prefill,
                               .free = free_prefill,
                               .lock = bz_model_lock(s->model),
                               .uses = s->model},
                       .s = s,
                       .ids = copy,
                       .n = (uint32_t)n};
    j->spans = spans;
    j->n_spans = n_spans;
    j->options = *options;
    bz_session_begin_job(s);
    *out = &j->job;
    return BZ_OK;
}

bz_status bz_session_prefill(bz_session *s, const int32_t *ids, size_t n,
                             const bz_prefill_options *options, bz_job **out, bz_error *err)
{
    bz_prefill_options o;
    const bz_status status = BZ_READ_PREFILL(&o, options, err);
    if (status != BZ_OK) {
        return status;
    }
    if (o.logits == BZ_LOGITS_ALL && s->model->text.config.canvas) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "A diffusion model has no logits after a prompt, only those of a canvas "
                       "(bz_session_canvas).");
    }
    for (size_t i = 0; i < n; i++) {
        if (ids[i] < 0 || (uint32_t)ids[i] >= s->model->text.config.vocab) {
            return bz_fail(err, BZ_BAD_REQUEST,
                           "Token %d (number %zu of the prompt) is not in the vocabulary of %u.",
                           ids[i], i, s->model->text.config.vocab);
        }
    }
    return bz_session_prefill_spans(s, ids, n, NULL, 0, &o, out, err);
}
