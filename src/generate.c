/* The jobs of a session: prefill a prompt, generate an answer. */
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "sample/greedy.h"
#include "session.h"

/* ---- prefill ---------------------------------------------------------------------- */

typedef struct prefill_job {
    bz_job job;
    bz_session *s;
    int32_t *ids;
    uint32_t n;
    bz_prefill_options options;
    bool started;  /* rewound */
    bool in_pass;
    uint32_t first; /* position of the pass's first row */
    pass_logits logits;
    uint32_t event; /* 1: a LOGITS event is due, 2: PROGRESS, 0: none */
} prefill_job;

static void free_prefill(bz_job *job)
{
    prefill_job *j = (prefill_job *)(void *)job;
    j->s->busy = false;
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
    uint32_t count = end - s->n < s->chunk ? end - s->n : s->chunk;
    j->first = s->n;
    j->logits = j->options.logits == BZ_LOGITS_ALL ? PASS_ALL : s->n + count == j->n ? PASS_LAST : PASS_NONE;
    if (bz_session_pass(s, j->ids + s->n, count, j->logits, &need->error) != BZ_OK) {
        return BZ_JOB_ERROR;
    }
    j->in_pass = true;
    return BZ_JOB_AGAIN;
}

static bz_progress step_prefill(bz_job *job, bz_need *need)
{
    prefill_job *j = (prefill_job *)(void *)job;
    bz_session *s = j->s;
    if (!j->started) {
        j->started = true;
        s->stats.reused += bz_session_rewind(s, j->ids, j->n);
        if (s->n == j->options.snapshot_at) {
            bz_session_keep_snapshot(s);
        }
    }
    if (j->event == 1) {
        j->event = 2;
        need->event = (bz_event){.kind = BZ_EVENT_LOGITS,
                                 .logits = bz_session_pass_logits(s),
                                 .position = j->first,
                                 .rows = s->n - j->first};
        return BZ_JOB_EVENT;
    }
    if (j->event == 2) {
        j->event = 0;
        need->event = (bz_event){.kind = BZ_EVENT_PROGRESS, .done = s->n, .total = j->n};
        return BZ_JOB_EVENT;
    }
    if (!j->in_pass) {
        return s->n == j->n ? BZ_JOB_DONE : start_chunk(j, need);
    }
    switch (bz_session_pass_step(s, &need->error)) {
    case BZ_PASS_AGAIN: return BZ_JOB_AGAIN;
    case BZ_PASS_ERROR: return BZ_JOB_ERROR;
    case BZ_PASS_DONE: break;
    }
    j->in_pass = false;
    s->stats.prefilled += s->n - j->first;
    if (s->n == j->options.snapshot_at) {
        bz_session_keep_snapshot(s);
    }
    j->event = j->logits == PASS_ALL ? 1 : 2;
    return BZ_JOB_AGAIN;
}

bz_status bz_session_prefill(bz_session *s, const int32_t *ids, size_t n, const bz_prefill_options *options,
                             bz_job **out, bz_error *err)
{
    if (s->busy) {
        return bz_fail(err, BZ_BAD_REQUEST, "The session is busy with another job.");
    }
    if (n == 0) {
        return bz_fail(err, BZ_BAD_REQUEST, "There are no tokens to prefill.");
    }
    if (n > s->context) {
        return bz_fail(err, BZ_CONTEXT_FULL, "The prompt has %zu tokens; the context holds %u.", n, s->context);
    }
    for (size_t i = 0; i < n; i++) {
        if (ids[i] < 0 || (uint32_t)ids[i] >= s->model->text.config.vocab) {
            return bz_fail(err, BZ_BAD_REQUEST, "Token %d (number %zu of the prompt) is not in the vocabulary of %u.",
                           ids[i], i, s->model->text.config.vocab);
        }
    }
    prefill_job *j = calloc(1, sizeof *j);
    int32_t *copy = malloc(n * sizeof *copy);
    if (!j || !copy) {
        free(j);
        free(copy);
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a prompt of %zu tokens.", n);
    }
    memcpy(copy, ids, n * sizeof *copy);
    *j = (prefill_job){.job = {.step = step_prefill, .free = free_prefill}, .s = s, .ids = copy, .n = (uint32_t)n};
    j->options = options ? *options : (bz_prefill_options){0};
    s->busy = true;
    *out = &j->job;
    return BZ_OK;
}

/* ---- generate ----------------------------------------------------------------------- */

typedef struct generate_job {
    bz_job job;
    bz_session *s;
    bz_generate_options options;
    uint32_t made;
    int32_t token; /* being fed back */
    bool in_pass, feed, ended;
} generate_job;

static void free_generate(bz_job *job)
{
    generate_job *j = (generate_job *)(void *)job;
    j->s->busy = false;
    free(j);
}

static bz_progress step_generate(bz_job *job, bz_need *need)
{
    generate_job *j = (generate_job *)(void *)job;
    bz_session *s = j->s;
    if (j->in_pass) {
        switch (bz_session_pass_step(s, &need->error)) {
        case BZ_PASS_AGAIN: return BZ_JOB_AGAIN;
        case BZ_PASS_ERROR: return BZ_JOB_ERROR;
        case BZ_PASS_DONE: j->in_pass = false; break;
        }
    }
    if (j->feed) { /* the token reported last becomes part of the sequence */
        j->feed = false;
        if (bz_session_pass(s, &j->token, 1, PASS_LAST, &need->error) != BZ_OK) {
            return BZ_JOB_ERROR;
        }
        j->in_pass = true;
        return BZ_JOB_AGAIN;
    }
    if (j->ended || s->n == s->context) {
        return BZ_JOB_DONE;
    }
    j->token = bz_sample_greedy(s->logits, s->model->text.config.vocab);
    j->made++;
    s->stats.generated++;
    bool end = !j->options.ignore_end && bz_token_ends(s->model, j->token);
    j->ended = end || (j->options.max_tokens && j->made >= j->options.max_tokens);
    j->feed = !end; /* the last token is fed too, so that the session can go on from it */
    need->event = (bz_event){.kind = BZ_EVENT_TOKEN, .token = j->token, .done = j->made};
    return BZ_JOB_EVENT;
}

bz_status bz_session_generate(bz_session *s, const bz_generate_options *options, bz_job **out, bz_error *err)
{
    if (s->busy) {
        return bz_fail(err, BZ_BAD_REQUEST, "The session is busy with another job.");
    }
    if (!s->has_logits) {
        return bz_fail(err, BZ_BAD_REQUEST, "Prefill a prompt before generating.");
    }
    generate_job *j = calloc(1, sizeof *j);
    if (!j) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a generation job.");
    }
    *j = (generate_job){.job = {.step = step_generate, .free = free_generate}, .s = s};
    j->options = options ? *options : (bz_generate_options){0};
    s->busy = true;
    *out = &j->job;
    return BZ_OK;
}
