/* One answer: its prompt, and its tokens as events. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "bezel_diffusion.h"
#include "server/engine/internal.h"

static const char NO_MEMORY[] = "No memory for the answer.";

sequence *sequence_new(engine_work *w, uint32_t choice)
{
    sequence *s = calloc(1, sizeof *s);
    if (s) {
        s->w = w;
        s->choice = choice;
        w->left++;
        w->held++;
    }
    return s;
}

void sequence_free(sequence *s)
{
    if (s->turn) {
        s->w->m->prepared--;
    }
    bz_turn_free(s->turn);
    text_stop_free(s->stop);
    free(s->ids);
    free(s->answer);
    free(s->inputs);
    free(s);
}

/* ---- the prompt -------------------------------------------------------------------------- */

static bz_status set_ids(sequence *s, const int32_t *before, size_t n_before, const int32_t *ids,
                         size_t n, bz_error *err)
{
    int32_t *copy = malloc((n_before + n + 1) * sizeof *copy);
    if (!copy) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the prompt.");
    }
    if (n_before) {
        memcpy(copy, before, n_before * sizeof *copy);
    }
    memcpy(copy + n_before, ids, n * sizeof *copy);
    free(s->ids);
    s->ids = copy;
    s->n_ids = n_before + n;
    return BZ_OK;
}

static bz_status check_ids(const bz_model *model, const int32_t *ids, size_t n, bz_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (ids[i] < 0 || (uint32_t)ids[i] >= bz_model_vocab(model)) {
            return bz_fail(err, BZ_BAD_REQUEST, "%d is not a token of this model.", ids[i]);
        }
    }
    return BZ_OK;
}

/* Leaves out the oldest turns of a conversation that is too long. One that continues tokens has no
 * turns to choose from. */
static bz_status fit(const engine *e, sequence *s, bz_error *err)
{
    const bool shift =
        e->o.shift == ENGINE_SHIFT_BY_API ? s->w->r.shift : e->o.shift == ENGINE_SHIFT_ON;
    char text[24];
    if (s->w->r.n_before) {
        return BZ_OK;
    }
    const bz_status status = bz_turn_fit(s->turn, s->w->m->context, shift, err);
    const size_t n = bz_turn_left_out(s->turn);
    if (status != BZ_OK || n == 0) {
        return status;
    }
    s->next_media = bz_turn_media(s->turn);
    const int len = snprintf(text, sizeof text, "%zu", n);
    return work_event(s->w, ENGINE_LEFT_OUT, s->choice, BZ_FINISH_NONE, text, (size_t)len)
               ? BZ_OK
               : bz_fail(err, BZ_OUT_OF_MEMORY, "%s", NO_MEMORY);
}

/* After all media are attached. The tokens of the conversation so far begin with the token that
 * every sequence begins with, so it is dropped from the turn. */
static bz_status take_turn_prompt(const engine *e, sequence *s, bz_error *err)
{
    const engine_request *r = &s->w->r;
    size_t n;
    uint32_t snapshot;
    bz_status status = check_ids(s->w->m->model, r->before, r->n_before, err);
    status = status == BZ_OK ? fit(e, s, err) : status;
    if (status != BZ_OK) {
        return status;
    }
    const int32_t *ids = bz_turn_prompt(s->turn, &n, &snapshot);
    const size_t drop = r->n_before && n > 1;
    return set_ids(s, r->before, r->n_before, ids + drop, n - drop, err);
}

static bz_status take_text_prompt(sequence *s, const engine_prompt *p, bz_error *err)
{
    const bz_model *model = s->w->m->model;
    if (!p->text) {
        const bz_status status = check_ids(model, p->ids, p->len, err);
        return status == BZ_OK ? set_ids(s, NULL, 0, p->ids, p->len, err) : status;
    }
    const int64_t n = bz_tokenize(model, p->text, p->len, true, true, NULL, 0, err);
    if (n < 0) {
        return err->code;
    }
    s->ids = malloc(((size_t)n + 1) * sizeof *s->ids);
    if (!s->ids) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the prompt.");
    }
    s->n_ids = (size_t)n;
    return bz_tokenize(model, p->text, p->len, true, true, s->ids, (size_t)n, err) == n ? BZ_OK
                                                                                        : err->code;
}

static bz_status read_stop(sequence *s, const char *json, size_t n, bz_error *err)
{
    bz_arena arena = {0};
    const bz_json_node *root;
    bz_status status = bz_json_read(&root, json, n, &arena, err);
    if (status == BZ_OK) {
        const bz_json_node *stop = bz_json_get(root, "stop");
        stop = stop && stop->kind != BZ_JSON_NULL
                   ? stop
                   : bz_json_get(bz_json_get(root, "options"), "stop");
        status = text_stop_new(&s->stop, stop, err);
    }
    bz_arena_free(&arena);
    return status;
}

/* A diffusion model denoises by the schedule of its file. Values that change nothing may be sent.
 */
static bz_status check_diffusion(const bz_model *model, const bz_generate_options *o, bz_error *err)
{
    const bz_sampling *s = &o->sampling;
    const bool cuts = s->greedy || s->top_k > 0 || (s->top_p != 0 && s->top_p < 1) || s->min_p > 0;
    const bool edits = (s->repetition != 0 && s->repetition != 1) || s->presence != 0 ||
                       s->frequency != 0 || s->n_bias;
    if (bz_model_canvas(model) && (s->temperature != 0 || cuts || edits || o->log_probs)) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "%s do not apply to a diffusion model, which draws tokens by a schedule of "
                       "its own; leave them out.",
                       o->log_probs ? "logprobs" : "temperature, top_p, penalties and the like");
    }
    return BZ_OK;
}

static bz_status prepare(engine *e, sequence *s, const char *json, size_t n, bz_error *err)
{
    const engine_request *r = &s->w->r;
    const bz_model *model = s->w->m->model;
    bool has_seed;
    bz_status status = bz_turn_new_media(&s->turn, model, json, n, err);
    if (status != BZ_OK) {
        return status;
    }
    s->w->m->prepared++;
    s->options = *bz_turn_options(s->turn, &has_seed);
    status = check_diffusion(model, &s->options, err);
    if (status != BZ_OK) {
        return status;
    }
    const uint32_t answer = s->choice % r->choices;
    s->options.sampling.seed = has_seed ? s->options.sampling.seed + answer : e->seed++;
    if (r->task == ENGINE_PROMPT) {
        status = take_text_prompt(s, &r->prompts[s->choice / r->choices], err);
        return status == BZ_OK ? read_stop(s, json, n, err) : status;
    }
    if (bz_turn_media(s->turn) && !e->o.decode) {
        return bz_fail(err, BZ_BAD_REQUEST, "This server takes no images or audio.");
    }
    return bz_turn_media(s->turn) ? BZ_OK : take_turn_prompt(e, s, err);
}

bz_status sequence_prepare(engine *e, sequence *s, bz_error *err)
{
    const engine_request *r = &s->w->r;
    const engine_model *m = s->w->m;
    char *json;
    size_t n;
    if (r->min_context > m->context) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "A context of %u is more than the %u that this server has; start it with "
                       "--ctx %u.",
                       r->min_context, m->context, r->min_context);
    }
    bz_status status = defaults_apply(&m->store, !bz_model_canvas(m->model), r->n_before > 0,
                                      r->json, r->n_json, &json, &n, err);
    if (status == BZ_OK) {
        status = prepare(e, s, json ? json : r->json, json ? n : r->n_json, err);
        free(json);
    }
    if (status == BZ_OK && s->n_ids >= m->context) {
        status = bz_fail(err, BZ_CONTEXT_FULL,
                         "The prompt has %zu tokens; the context holds %u and needs room for an "
                         "answer. Shorten the conversation, or start the server with a larger "
                         "--ctx.",
                         s->n_ids, m->context);
    }
    return status;
}

/* ---- starting ------------------------------------------------------------------------------ */

static bool suits_batch(const sequence *s)
{
    return !s->options.log_probs && !bz_turn_media(s->turn);
}

bool sequence_must_wait(const sequence *s)
{
    return s->turn && suits_batch(s) && !bz_batch_has_free(s->w->m->batch);
}

bz_status sequence_start(engine *e, sequence *s, bz_error *err)
{
    engine_model *m = s->w->m;
    bz_status status = BZ_OK;
    if (!suits_batch(s)) {
        if (s->n_ids == 0) {
            status = s->next_media < bz_turn_media(s->turn) ? BZ_OK : take_turn_prompt(e, s, err);
        }
        status = status == BZ_OK ? session_job_start(e, s, err) : status;
    } else if (bz_batch_has_free(m->batch)) {
        status = bz_batch_start(m->batch, s->ids, s->n_ids, &s->options, &s->slot, err);
        if (status == BZ_OK) {
            s->phase = SEQUENCE_BATCH;
            m->in_slot[s->slot] = s;
        }
    }
    if (status == BZ_OK && s->phase != SEQUENCE_WAITING) {
        m->running++;
        s->began = s->began ? s->began : bz_os_now();
    }
    return status;
}

void sequence_stop(sequence *s)
{
    engine_model *m = s->w->m;
    if (s->phase == SEQUENCE_WAITING) {
        return;
    }
    if (s->phase == SEQUENCE_BATCH) {
        s->reused = bz_batch_slot_reused(m->batch, s->slot);
        bz_batch_stop(m->batch, s->slot);
        m->in_slot[s->slot] = NULL;
    } else if (s->phase == SEQUENCE_EMBEDDING) {
        embed_job_stop(s);
    } else {
        session_job_stop(s);
    }
    s->phase = SEQUENCE_WAITING;
    m->running--;
    m->last_used = bz_os_now();
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static bool emit(sequence *s, engine_event_kind kind, const char *text, size_t len)
{
    return len == 0 || work_event(s->w, kind, s->choice, BZ_FINISH_NONE, text, len);
}

static bool emit_parts(sequence *s)
{
    static const engine_event_kind kinds[] = {[BZ_TURN_THINKING] = ENGINE_THINKING,
                                              [BZ_TURN_ANSWER] = ENGINE_ANSWER,
                                              [BZ_TURN_CALL_BEGIN] = ENGINE_CALL_BEGIN,
                                              [BZ_TURN_CALL] = ENGINE_CALL,
                                              [BZ_TURN_BROKEN_CALL] = ENGINE_BROKEN_CALL};
    const char *text;
    size_t len;
    bz_turn_part part;
    bool ok = true, thinking = false;
    while (ok && !s->ended && (part = bz_turn_next(s->turn, &text, &len)) != BZ_TURN_NOTHING) {
        if (part == BZ_TURN_END) {
            s->ended = true;
        } else {
            ok = emit(s, kinds[part], text, len);
            thinking |= part == BZ_TURN_THINKING;
        }
    }
    s->thinking += thinking;
    return ok;
}

/* The text of an answer to a prompt. token -1: the end. */
static bool emit_text(sequence *s, int32_t token)
{
    char text[BZ_TEXT_MAX];
    size_t n = bz_text_push(&s->text, s->w->m->model, token, false, text), shown;
    if (!s->stop) {
        return emit(s, ENGINE_ANSWER, text, n);
    }
    bool found;
    const char *visible = text_stop_push(s->stop, text, n, token < 0, &shown, &found);
    if (found) {
        s->ended = true;
        s->finish = BZ_FINISH_STOP;
    }
    return visible && emit(s, ENGINE_ANSWER, visible, shown);
}

static bool push(sequence *s, int32_t token, bz_error *err)
{
    if (s->w->r.task == ENGINE_PROMPT) {
        return emit_text(s, token) || bz_fail(err, BZ_OUT_OF_MEMORY, NO_MEMORY) == BZ_OK;
    }
    return bz_turn_push(s->turn, token, err) == BZ_OK &&
           (emit_parts(s) || bz_fail(err, BZ_OUT_OF_MEMORY, NO_MEMORY) == BZ_OK);
}

static bool keep_token(sequence *s, int32_t token, bz_error *err)
{
    if (!s->w->r.report_ids || s->choice) {
        return true;
    }
    int32_t *more = realloc(s->answer, (s->generated + 1) * sizeof *more);
    if (!more) {
        bz_fail(err, BZ_OUT_OF_MEMORY, NO_MEMORY);
        return false;
    }
    more[s->generated] = token;
    s->answer = more;
    return true;
}

bool sequence_token(sequence *s, int32_t token, bz_finish finish, bz_error *err)
{
    const bool chat = s->w->r.task == ENGINE_CHAT;
    if (token >= 0) {
        s->first_token = s->first_token ? s->first_token : bz_os_now();
        /* The end token of a prompt's answer has no text. */
        if (!keep_token(s, token, err) ||
            ((chat || finish != BZ_FINISH_END) && !push(s, token, err))) {
            return true;
        }
        s->generated++;
    }
    if (!s->ended && finish == BZ_FINISH_NONE) {
        return false;
    }
    if (!s->ended && !push(s, -1, err)) {
        return true;
    }
    s->finish = s->finish != BZ_FINISH_NONE ? s->finish
                : chat                      ? bz_turn_finish(s->turn, finish)
                                            : finish;
    return true;
}

/* ---- the end ----------------------------------------------------------------------------------
 */

static void add_usage(sequence *s, uint64_t now)
{
    engine_usage *u = &s->w->usage;
    const uint64_t first = s->first_token ? s->first_token : now;
    const bool counts_prompt = s->choice % s->w->r.choices == 0;
    u->prompt_tokens += counts_prompt ? s->n_ids : 0;
    u->cached_tokens += counts_prompt ? s->reused : 0;
    u->answer_tokens += s->generated;
    u->thinking_tokens += s->thinking;
    u->prompt_ns += first - s->began;
    u->answer_ns += now - first;
    u->total_ns = now - s->w->submitted;
    if (s->w->r.report_ids && s->choice == 0) {
        int32_t *ids = realloc(s->ids, (s->n_ids + s->generated + 1) * sizeof *ids);
        if (ids) {
            memcpy(ids + s->n_ids, s->answer, s->generated * sizeof *ids);
            u->ids = ids;
            u->n_ids = s->n_ids + s->generated;
            s->ids = NULL;
        }
    }
}

void sequence_report_end(engine *e, sequence *s)
{
    const uint64_t now = bz_os_now(), first = s->first_token ? s->first_token : now;
    add_usage(s, now);
    bz_lock_take(&e->lock);
    engine_figures *f = &e->figures;
    f->prompt_tokens += s->n_ids;
    f->cached_tokens += s->reused;
    f->answer_tokens += s->generated;
    f->prompt_ns += first - s->began;
    f->answer_ns += now - first;
    bz_lock_give(&e->lock);
    work_event(s->w, ENGINE_END, s->choice, s->finish, "", 0);
}
