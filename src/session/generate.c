/* The jobs of a session: prefill a prompt, generate an answer. */
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "bezel_diffusion.h"
#include "session/job.h"
#include "model/hints.h"
#include "session/recover.h"
#include "sample/random.h"
#include "sample/sampler.h"
#include "session/session.h"
#include "session/emit.h"

/* ---- prefill ---------------------------------------------------------------------- */

typedef struct prefill_job {
    bz_job job;
    bz_session *s;
    int32_t *ids;
    uint32_t n;
    session_span *spans; /* until the session has them */
    uint32_t n_spans;
    bz_prefill_options options;
    bool started; /* rewound */
    bool in_pass;
    uint32_t first; /* position of the pass's first row */
    pass_logits logits;
    enum { TELL_NOTHING, TELL_LOGITS, TELL_PROGRESS } due; /* logits first, then progress */
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
        end = snapshot; /* a chunk ends where the way back begins */
    }
    uint32_t count = bz_session_fit_pass(s, s->n, end - s->n < s->chunk ? end - s->n : s->chunk);
    j->first = s->n;
    j->logits = s->model->text.config.canvas         ? PASS_NONE /* an encoder has none */
                : j->options.logits == BZ_LOGITS_ALL ? PASS_ALL
                : s->n + count == j->n               ? PASS_LAST
                                                     : PASS_NONE;
    bz_status status = bz_session_pass(s, j->ids + s->n, count, j->logits, &need->error);
    if (status == BZ_OUT_OF_MEMORY && bz_session_take_less(s, count)) {
        return BZ_JOB_AGAIN;
    }
    j->in_pass = status == BZ_OK;
    return j->in_pass ? BZ_JOB_AGAIN : BZ_JOB_ERROR;
}

static bz_progress work_prefill(bz_job *job, bz_need *need)
{
    prefill_job *j = (prefill_job *)(void *)job;
    bz_session *s = j->s;
    if (j->due == TELL_LOGITS) {
        j->due = TELL_PROGRESS;
        need->event = (bz_event){.kind = BZ_EVENT_LOGITS,
                                 .logits = bz_session_pass_logits(s),
                                 .position = j->first,
                                 .rows = s->n - j->first};
        return BZ_JOB_EVENT;
    }
    if (j->due == TELL_PROGRESS) {
        j->due = TELL_NOTHING;
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
    j->due = j->logits == PASS_ALL ? TELL_LOGITS : TELL_PROGRESS;
    return BZ_JOB_AGAIN;
}

/* The pass under way is gone: its chunk is begun once more. So is one whose logits nobody has seen
 * yet. */
static void restart_prefill(bz_job *job)
{
    prefill_job *j = (prefill_job *)(void *)job;
    j->in_pass = false;
    if (j->due == TELL_LOGITS) {
        j->due = TELL_NOTHING;
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
        if (bz_session_make_room(s, j->spans, j->n_spans, &need->error) != BZ_OK) {
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
        bz_session_give_room(s);
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
    *j = (prefill_job){
        .job = {.step = step_prefill, .free = free_prefill, .lock = bz_model_lock(s->model)},
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
                       "A diffusion model has no logits behind a prompt, only those of a canvas "
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

/* ---- generate ----------------------------------------------------------------------- */

typedef struct generate_job {
    bz_job job;
    bz_session *s;
    uint64_t seed;
    bz_emit emit;

    int32_t token; /* being fed back */
    bool in_pass, feed;

    /* Where the device ranks its logits itself: passes are sent before the token before them is
     * known to be right. The device goes on with its own choice; what is sent too much, or on a
     * wrong one, is forgotten. */
    uint32_t ahead; /* passes under way at most; 0: rows of logits are read */
    uint32_t end;   /* no position from here on is computed */
    bool begun;     /* `ahead` is known */
    bool asked;     /* the device knows what is wanted */
    bool listed;    /* the next token is chosen from `list`, else from the session's row */
    bool getting_row, has_row;
    uint32_t rows_missed; /* times the list was too short */
    bz_shortlist list;
    int32_t guess;
} generate_job;

static void free_generate(bz_job *job)
{
    generate_job *j = (generate_job *)(void *)job;
    bz_session_end_job(j->s);
    bz_emit_free(&j->emit);
    free(j);
}

/* Can tokens be sent before those before them are checked? Penalties look at tokens not known yet.
 */
static bool can_run_ahead(const generate_job *j)
{
    const bz_session *s = j->s;
    return s->backend->can_run_ahead(s->backend) && bz_sampler_edits(s->sampler)->window == 0;
}

/* How passes are made, on the device that the session is on now. */
static void begin_on_device(generate_job *j)
{
    const bz_session *s = j->s;
    j->begun = true;
    j->ahead = !s->ahead || bz_sampler_needs_rows(s->sampler) ? 0 : can_run_ahead(j) ? s->ahead : 1;
}

/* Sends the token to be fed, if it is not under way yet, and as many after it as may be. */
static bz_pass_state send(generate_job *j, bz_error *err)
{
    bz_session *s = j->s;
    while (s->sent < j->ahead && (s->sent == 0 || s->n + s->sent < j->end)) {
        const uint32_t at = s->n + s->sent;
        const bool first = s->sent == 0, ask = !j->asked || bz_sampler_edits(s->sampler)->window;
        if (first) {
            s->tokens[at] = j->token; /* a place that is free until the pass is done */
            bz_sampler_see(s->sampler, s->tokens, at + 1);
        }
        const bz_topk_request request = bz_sampler_topk_request(s->sampler);
        bz_pass_state state = bz_session_send(s, first ? j->token : -1, ask ? &request : NULL,
                                              bz_random_unit(j->seed, at + 1), err);
        if (state != BZ_PASS_DONE) {
            return first ? state : BZ_PASS_DONE; /* what keeps a pass ahead from being sent may
                                                    never matter */
        }
        j->asked = true;
    }
    return BZ_PASS_DONE;
}

/* The pass of the token fed, or the reading of a row that turned out to be needed. */
static bz_pass_state step_pass(generate_job *j, bz_error *err)
{
    if (j->ahead == 0 || j->getting_row) {
        bz_pass_state state = bz_session_pass_step(j->s, err);
        if (state == BZ_PASS_DONE) {
            j->has_row = true;
            j->getting_row = false;
        }
        return state;
    }
    bz_pass_state state = send(j, err);
    if (state == BZ_PASS_DONE) {
        state = bz_session_receive(j->s, &j->list, &j->guess, err);
    }
    if (state == BZ_PASS_DONE) {
        j->listed = true;
        j->has_row = false;
        state = bz_shortlist_check(&j->list, err) == BZ_OK ? state : BZ_PASS_ERROR;
    }
    return state;
}

static bz_status get_row(generate_job *j, bool there, bz_error *err)
{
    bz_session_forget(j->s);
    j->in_pass = j->getting_row = true;
    return bz_session_row(j->s, there, err);
}

/* AGAIN: the row is needed first. */
static bz_progress choose(generate_job *j, bz_choice *choice, bz_error *err)
{
    bz_session *s = j->s;
    const double u = bz_random_unit(
        j->seed, s->n); /* by position: an answer made in two jobs is the one made in one */
    const float *row = j->listed && !j->has_row ? NULL : s->logits;
    if (row) { /* also where a list was too short: then the sums, too, are the host's own */
        bz_sampler_see(s->sampler, s->tokens, s->n);
        if (bz_sampler_shortlist(s->sampler, s->logits, &j->list, err) != BZ_OK) {
            return BZ_JOB_ERROR;
        }
    }
    if (!bz_sampler_choose(s->sampler, &j->list, row, u, choice)) {
        bool there = s->sent == 0;
        j->rows_missed++;
        if (!there && j->rows_missed * 8 > j->emit.made + 8) {
            j->ahead = 1; /* nothing is gained by sending what is then forgotten */
        }
        return get_row(j, there, err) == BZ_OK ? BZ_JOB_AGAIN : BZ_JOB_ERROR;
    }
    if (s->sent && choice->id != j->guess) {
        bz_session_forget(s); /* the device went on with another token */
    }
    j->listed = j->has_row = false;
    return BZ_JOB_DONE;
}

/* With the context or the limit reached the last token is fed too, so that the session can go on
 * from it. */
static size_t finish_token(generate_job *j)
{
    size_t len;
    j->job.finish = bz_emit_push(&j->emit, j->token, j->s->n + 1 == j->s->context, &len);
    j->feed = j->job.finish != BZ_FINISH_END && j->job.finish != BZ_FINISH_STOP;
    return len;
}

static bz_progress work_generate(bz_job *job, bz_need *need)
{
    generate_job *j = (generate_job *)(void *)job;
    bz_session *s = j->s;
    if (!j->begun) {
        begin_on_device(j);
    }
    if (j->in_pass) {
        bz_pass_state state = step_pass(j, &need->error);
        if (state != BZ_PASS_DONE) {
            return bz_session_progress(s, state, need);
        }
        j->in_pass = false;
    }
    if (j->feed) { /* the token reported last becomes part of the sequence */
        if (j->ahead == 0 && bz_session_pass(s, &j->token, 1, PASS_LAST, &need->error) != BZ_OK) {
            return BZ_JOB_ERROR;
        }
        j->feed = false;
        j->in_pass = true;
        return BZ_JOB_AGAIN;
    }
    if (job->finish == BZ_FINISH_NONE && s->n == s->context) {
        job->finish = BZ_FINISH_CONTEXT; /* full before the first token */
    }
    if (job->finish != BZ_FINISH_NONE) {
        return BZ_JOB_DONE;
    }
    if (!j->listed && !s->has_logits) { /* the job before this one read lists */
        return get_row(j, false, &need->error) == BZ_OK ? BZ_JOB_AGAIN : BZ_JOB_ERROR;
    }
    bz_choice choice;
    bz_progress chosen = choose(j, &choice, &need->error);
    if (chosen != BZ_JOB_DONE) {
        return chosen;
    }
    j->token = choice.id;
    s->stats.generated++;
    size_t len = finish_token(j);
    need->event = (bz_event){.kind = BZ_EVENT_TOKEN,
                             .done = j->emit.made,
                             .token = j->token,
                             .text = j->emit.text,
                             .text_len = len,
                             .log_prob = choice.log_prob,
                             .top = choice.top,
                             .n_top = choice.n_top};
    return BZ_JOB_EVENT;
}

/* What was under way is gone: the token reported last is fed once more, and a row that was wanted
 * is computed. */
static void restart_generate(bz_job *job)
{
    generate_job *j = (generate_job *)(void *)job;
    j->feed |= j->in_pass && !j->getting_row;
    j->in_pass = j->getting_row = j->has_row = false;
    j->listed = false;
    j->asked = false;
    j->begun = false;
}

static bz_progress step_generate(bz_job *job, bz_need *need)
{
    return bz_session_work(((generate_job *)(void *)job)->s, job, work_generate, restart_generate,
                           need);
}

/* Copies what the options point to and readies the session's sampler. */
static bz_status fill_generate(generate_job *j, const bz_generate_options *o, bz_error *err)
{
    const bz_session *s = j->s;
    bz_status status = bz_emit_begin(&j->emit, s->model, o, err);
    if (status != BZ_OK) {
        return status;
    }
    bz_sampling sampling = o->sampling;
    bz_hints_sampling(s->model->set.main, &sampling);
    j->end = o->max_tokens && o->max_tokens < s->context - s->n ? s->n + o->max_tokens : s->context;
    return bz_sampler_begin(s->sampler, &sampling, o->log_probs, o->top_log_probs, err);
}

bz_status bz_session_generate(bz_session *s, const bz_generate_options *options, bz_job **out,
                              bz_error *err)
{
    bz_generate_options o;
    const bz_status read = BZ_READ_GENERATE(&o, options, err);
    if (read != BZ_OK) {
        return read;
    }
    if (s->model->text.config.canvas) {
        return bz_session_diffuse(s, &o, NULL, out, err);
    }
    if (s->busy) {
        return bz_fail(err, BZ_BAD_REQUEST, "The session is busy with another job.");
    }
    if (!s->has_logits && !s->logits_on_device) {
        return bz_fail(err, BZ_BAD_REQUEST, "Prefill a prompt before generating.");
    }
    generate_job *j = calloc(1, sizeof *j);
    if (!j) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a generation job.");
    }
    *j = (generate_job){
        .job = {.step = step_generate, .free = free_generate, .lock = bz_model_lock(s->model)},
        .s = s,
        .seed = o.sampling.seed};
    bz_status status = fill_generate(j, &o, err);
    if (status != BZ_OK) {
        free_generate(&j->job);
        return status;
    }
    bz_session_begin_job(s);
    *out = &j->job;
    return BZ_OK;
}
