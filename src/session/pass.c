/* Passes over tokens: which plan is used for how many rows, and what the session keeps afterwards.
 */
#include <string.h>

#include "session/job.h"
#include "model/diffusion.h"
#include "session/draft.h"
#include "session/session.h"

static const uint32_t buckets[BZ_BUCKETS] = {1, BZ_BIT_EQUAL_ROWS, BZ_SMALL_CHUNK, BZ_MAX_CHUNK,
                                             BZ_MAX_ROWS};

/* ---- what a drafter begins with -------------------------------------------------------- */

/* A pass of a plan with that many rows of logits leaves the states of the positions from `first`
 * on, or none. */
static void keep_states(bz_session *s, const bz_plan *plan, uint32_t first, uint32_t rows)
{
    s->state_first = first;
    s->state_rows = plan->out_rows <= BZ_SHARED_ROWS ? rows : 0;
}

/* ---- one pass ------------------------------------------------------------------------- */

static bz_status plan_for(bz_session *s, uint32_t rows, bool all, session_plan **out, bz_error *err)
{
    int b = 0;
    while (buckets[b] < rows) {
        b++;
    }
    session_plan *p = &s->plans[all][b];
    if (!p->schedule) {
        bz_status status = BZ_OK;
        if (!p->plan) {
            const bz_text_model *text = bz_adapted_text(s->model, s->adapters);
            status = text->config.canvas
                         ? bz_diffusion_record_encoder(text, buckets[b], &p->plan, err)
                         : bz_text_record(text, buckets[b], all ? buckets[b] : 1, &p->plan, err);
        }
        if (status == BZ_OK) {
            status = s->backend->prepare(s->backend, p->plan, &p->schedule, err);
        }
        if (status != BZ_OK) {
            return status;
        }
    }
    *out = p;
    return BZ_OK;
}

bz_status bz_session_start_pass(bz_session *s, uint32_t first, uint32_t count, uint32_t like,
                                pass_logits logits, bz_error *err)
{
    bz_status status = plan_for(s, like, logits == PASS_ALL, &s->running, err);
    if (status == BZ_OK) {
        status = s->backend->kv_reserve(s->backend, s->kv, first + count, err);
    }
    if (status != BZ_OK) {
        return status;
    }
    for (uint32_t i = 0; i < count; i++) {
        s->pos[i] = (int32_t)(first + i);
        s->pass_rows[first + i] = (uint16_t)(i ? 0 : like);
        s->out[i] = logits == PASS_LAST ? count - 1 : i;
    }
    s->rows = (bz_rows){.n = count,
                        .n_out = logits == PASS_ALL    ? count
                                 : logits == PASS_LAST ? 1
                                                       : 0,
                        .more_follows = logits == PASS_MORE,
                        .id = s->tokens + first,
                        .pos = s->pos,
                        .seq = s->seq,
                        .out = s->out,
                        .kv = s->kv_list};
    bz_session_fill_soft(s, &s->rows, first);
    s->first = first;
    keep_states(s, s->running->plan, first + s->out[0], s->rows.n_out);
    bz_rings_overwrite(&s->rings, s->backend, s->kv, first + count);
    s->backend->begin(s->backend, s->running->schedule, &s->rows);
    return BZ_OK;
}

bool bz_session_shrink_chunk(bz_session *s, uint32_t count)
{
    if (count <= BZ_SMALL_CHUNK ||
        s->chunk <= BZ_SMALL_CHUNK) { /* more than a chunk is an image, which stays whole */
        return false;
    }
    s->chunk = BZ_SMALL_CHUNK; /* many rows still; a GPU may cut its sums otherwise, which shows in
                                 the last bits only */
    return true;
}

bz_status bz_session_pass(bz_session *s, const int32_t *ids, uint32_t count, pass_logits logits,
                          bz_error *err)
{
    if (count > s->context - s->n) {
        return bz_fail(err, BZ_CONTEXT_FULL, "The context of %u tokens is full.", s->context);
    }
    memcpy(s->tokens + s->n, ids, count * sizeof *ids);
    return bz_session_start_pass(s, s->n, count, count, logits, err);
}

const float *bz_session_pass_logits(const bz_session *s)
{
    return s->backend->output(s->backend, s->running->schedule);
}

/* Output row `row` of the pass that is done becomes the session's logits. */
static bz_status keep_logits(bz_session *s, uint32_t row, bz_error *err)
{
    const uint32_t vocab = s->model->text.config.vocab;
    memcpy(s->logits, bz_session_pass_logits(s) + (size_t)row * vocab, vocab * sizeof *s->logits);
    s->has_logits = bz_any_finite(s->logits, vocab);
    return s->has_logits ? BZ_OK /* else broken weights: an error, never a token */
                         : bz_fail(err, BZ_NUMERIC,
                                   "The model computed no finite number after token %u; the file "
                                   "is probably damaged.",
                                   s->n);
}

bz_pass_state bz_session_pass_step(bz_session *s, bz_error *err)
{
    bz_pass_state state = s->backend->step(s->backend, bz_os_now() + BZ_STEP_NS, err);
    if (state != BZ_PASS_DONE) {
        return state;
    }
    s->n = s->first + s->rows.n;
    s->logits_on_device = s->has_logits = false;
    return s->rows.n_out == 0 || keep_logits(s, s->rows.n_out - 1, err) == BZ_OK ? BZ_PASS_DONE
                                                                                 : BZ_PASS_ERROR;
}

bz_pass_state bz_session_verify_step(bz_session *s, bz_error *err)
{
    bz_pass_state state = s->backend->step(s->backend, bz_os_now() + BZ_STEP_NS, err);
    if (state == BZ_PASS_DONE) {
        s->logits_on_device = false;
        state = bz_session_take_row(s, 0, err) == BZ_OK ? state : BZ_PASS_ERROR;
    }
    return state;
}

bz_status bz_session_take_row(bz_session *s, uint32_t row, bz_error *err)
{
    s->n = s->first + row + 1;
    return keep_logits(s, row, err);
}

bz_progress bz_session_progress(bz_session *s, bz_pass_state state, bz_need *need)
{
    switch (state) {
    case BZ_PASS_AGAIN:
    case BZ_PASS_DONE: return BZ_JOB_AGAIN;
    case BZ_PASS_WAIT: return BZ_JOB_NEED_GPU;
    case BZ_PASS_BYTES:
        need->n_reads = s->backend->reads(s->backend, need->reads);
        return BZ_JOB_NEED_BYTES;
    case BZ_PASS_ERROR: break;
    }
    return BZ_JOB_ERROR;
}

/* ---- passes that end in a short list -------------------------------------------------- */

bz_pass_state bz_session_send(bz_session *s, int32_t id, const bz_topk_request *request, double u,
                              bz_error *err)
{
    const uint32_t at = s->n + s->sent;
    if (at >= s->context) {
        bz_fail(err, BZ_CONTEXT_FULL, "The context of %u tokens is full.", s->context);
        return BZ_PASS_ERROR;
    }
    if (plan_for(s, 1, false, &s->running, err) != BZ_OK ||
        s->backend->kv_reserve(s->backend, s->kv, at + 1, err) != BZ_OK) {
        return BZ_PASS_ERROR;
    }
    bz_topk_request topk = request ? *request : (bz_topk_request){0};
    if (s->test_override) {
        s->test_override(&topk, &u);
    }
    if (request &&
        s->backend->set_topk(s->backend, s->running->schedule, s->kv, &topk, err) != BZ_OK) {
        return BZ_PASS_ERROR;
    }
    const int32_t pos = (int32_t)at;
    const uint32_t zero = 0;
    const bz_rows rows = {
        .n = 1, .n_out = 1, .id = &id, .pos = &pos, .seq = &zero, .out = &zero, .kv = s->kv_list};
    bz_pass_state state = s->backend->send(s->backend, s->running->schedule, &rows,
                                           id < 0 ? BZ_FEED_CHOICE : BZ_FEED_IDS, &u, err);
    if (state == BZ_PASS_DONE) {
        bz_rings_overwrite(&s->rings, s->backend, s->kv, at + 1);
        keep_states(s, s->running->plan, at, 1);
        s->pass_rows[at] = 1;
        s->sent_id = s->sent++ ? s->sent_id : id;
    }
    return state;
}

bz_pass_state bz_session_receive(bz_session *s, bz_shortlist *list, int32_t *guess, bz_error *err)
{
    bz_pass_state state = s->backend->receive(s->backend, list, guess, NULL, err);
    if (state == BZ_PASS_DONE) {
        s->tokens[s->n++] = s->sent_id;
        s->sent_id = *guess;
        s->sent--;
        s->has_logits = false;
        s->logits_on_device = true;
    }
    return state;
}

void bz_session_forget(bz_session *s)
{
    if (s->sent) {
        s->backend->discard(s->backend);
        s->sent = 0;
    }
}

bz_status bz_session_row(bz_session *s, bool there, uint32_t row, bz_error *err)
{
    if (!there) {
        return bz_session_start_pass(s, s->n - 1, 1, 1, PASS_LAST, err);
    }
    s->rows = (bz_rows){.n = 1, .n_out = row + 1};
    s->first = s->n - 1;
    s->backend->begin_logits(s->backend);
    return BZ_OK;
}

/* ---- passes over guesses that end in short lists ---------------------------------------- */

static bz_status verify_plan(bz_session *s, uint32_t rows, session_plan **out, bz_error *err)
{
    session_plan *p = &s->verify_plans[rows - 2];
    bz_status status = BZ_OK;
    if (!p->plan) {
        const bz_text_model *text = bz_adapted_text(s->model, s->adapters);
        status = bz_text_record(text, rows, rows, &p->plan, err);
        if (status == BZ_OK) {
            p->plan->many_sequences = true; /* such plans end in a list for every row */
        }
    }
    if (status == BZ_OK && !p->schedule) {
        status = s->backend->prepare(s->backend, p->plan, &p->schedule, err);
    }
    *out = p;
    return status;
}

bz_pass_state bz_session_send_rows(bz_session *s, uint32_t count, bz_feed feed,
                                   const bz_topk_request *request, const double *u, bz_error *err)
{
    if (verify_plan(s, bz_drafts_round_up(count - 1) + 1, &s->running, err) != BZ_OK ||
        s->backend->kv_reserve(s->backend, s->kv, s->n + count, err) != BZ_OK ||
        s->backend->set_topk(s->backend, s->running->schedule, s->kv, request, err) != BZ_OK) {
        return BZ_PASS_ERROR;
    }
    for (uint32_t i = 0; i < count; i++) {
        s->pos[i] = (int32_t)(s->n + i);
        s->out[i] = i;
        s->pass_rows[s->n + i] = (uint16_t)(i ? 0 : count);
    }
    const bz_rows rows = {.n = count,
                          .n_out = count,
                          .id = s->tokens + s->n,
                          .pos = s->pos,
                          .seq = s->seq,
                          .out = s->out,
                          .kv = s->kv_list};
    const bz_pass_state state =
        s->backend->send(s->backend, s->running->schedule, &rows, feed, u, err);
    if (state == BZ_PASS_DONE) {
        s->first = s->n;
        s->sent = 1;
        bz_rings_overwrite(&s->rings, s->backend, s->kv, s->n + count);
        keep_states(s, s->running->plan, s->n, count);
    }
    return state;
}

bz_pass_state bz_session_receive_rows(bz_session *s, bz_shortlist *lists, bz_error *err)
{
    int32_t choices[BZ_MAX_DRAFTS + 1];
    const bz_pass_state state =
        s->backend->receive(s->backend, lists, choices, s->tokens + s->first, err);
    if (state == BZ_PASS_DONE) {
        s->n = s->first + 1;
        s->sent = 0;
        s->has_logits = false;
        s->logits_on_device = true;
    }
    return state;
}
