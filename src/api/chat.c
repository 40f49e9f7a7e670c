/* bz_chat: a whole request in one call, on top of turns, sessions and jobs. */
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "base/options.h"
#include "bezel_media.h"
#include "session/session.h"

typedef struct chat_run {
    const bz_chat_options *o;
    const bz_model *model;
    bz_session *session;
    bz_turn *turn;
    bz_host host; /* the caller's */

    bz_json_buffer content, thinking;
    bz_json_buffer calls; /* items of message.tool_calls, separated by commas */
    uint32_t n_calls;
    bool ended;     /* by an end token or a stop string */
    bool cancelled; /* by the caller's callback */
    bz_error error; /* inside a callback */
    uint64_t prompt_tokens, reused, generated;
    bz_finish finish;
} chat_run;

void bz_free(void *p)
{
    free(p);
}

/* ---- parts ------------------------------------------------------------------------ */

static bool append(bz_json_buffer *to, const char *text, size_t len)
{
    return len == 0 || bz_json_to_buffer(to, text, len);
}

/* {"id", "type", "function": {"name", "arguments"}} of the turn's {"name", "arguments"}; arguments
 * become a string, as in OpenAI's API. */
static bool append_call(chat_run *c, const char *text, size_t len)
{
    bz_arena arena = {0};
    const bz_json_node *call;
    bz_json_buffer arguments = {0};
    bz_json j, inner;
    char id[16] = "call_";
    bool ok = bz_json_read(&call, text, len, &arena, NULL) == BZ_OK;
    if (ok) {
        bz_json_init(&inner, bz_json_to_buffer, &arguments);
        bz_json_node_write(&inner, bz_json_get(call, "arguments"));
        ok = bz_json_finish(&inner) && append(&c->calls, ",", c->n_calls ? 1 : 0);
    }
    if (ok) {
        size_t n = strlen(id), digit = 1;
        for (; c->n_calls / digit >= 10; digit *= 10) {
        }
        for (; digit && n + 1 < sizeof id; digit /= 10) {
            id[n++] = (char)('0' + c->n_calls / digit % 10);
        }
        bz_json_init(&j, bz_json_to_buffer, &c->calls);
        bz_json_object(&j);
        bz_json_put_text(&j, "id", id);
        bz_json_put_text(&j, "type", "function");
        bz_json_key(&j, "function");
        bz_json_object(&j);
        bz_json_put_str(&j, "name", bz_json_string(bz_json_get(call, "name")));
        bz_json_put_str(&j, "arguments", (bz_str){arguments.text, arguments.n});
        bz_json_end(&j);
        bz_json_end(&j);
        ok = bz_json_finish(&j);
        c->n_calls++;
    }
    free(arguments.text);
    bz_arena_free(&arena);
    return ok;
}

static bool keep_part(chat_run *c, bz_turn_part part, const char *text, size_t len)
{
    switch (part) {
    case BZ_TURN_THINKING: return append(&c->thinking, text, len);
    case BZ_TURN_ANSWER:
    case BZ_TURN_BROKEN_CALL: return append(&c->content, text, len);
    case BZ_TURN_CALL: return append_call(c, text, len);
    case BZ_TURN_CALL_BEGIN:
    case BZ_TURN_NOTHING:
    case BZ_TURN_END: break;
    }
    return true;
}

/* Hands out the parts that are complete. Returns non-zero to end the job. */
static int drain(chat_run *c)
{
    const char *text;
    size_t len;
    bz_turn_part part;
    while ((part = bz_turn_next(c->turn, &text, &len)) != BZ_TURN_NOTHING) {
        if (part == BZ_TURN_END) {
            c->ended = true;
            continue;
        }
        if (!keep_part(c, part, text, len)) {
            bz_fail(&c->error, BZ_OUT_OF_MEMORY, "No memory for the answer.");
            return 1;
        }
        if (c->o->part && c->o->part(c->o->user, part, text, len) != 0) {
            c->cancelled = true;
            return 1;
        }
    }
    return c->ended;
}

/* ---- jobs ------------------------------------------------------------------------- */

static int on_read(void *user, const bz_read *read)
{
    const chat_run *c = user;
    return c->host.read ? c->host.read(c->host.user, read) : 1;
}

static int on_event(void *user, const bz_event *event)
{
    chat_run *c = user;
    if (c->host.event && c->host.event(c->host.user, event) != 0) {
        c->cancelled = true;
        return 1;
    }
    if (event->kind != BZ_EVENT_TOKEN) {
        return 0;
    }
    c->generated++;
    return bz_turn_push(c->turn, event->token, &c->error) == BZ_OK ? drain(c) : 1;
}

/* Runs a job to its end, or to the end of the turn, and frees it. */
static bz_status run_job(chat_run *c, bz_job *job, bz_error *err)
{
    const bz_host host = {.size = sizeof host, .read = on_read, .event = on_event, .user = c};
    bz_error error = {0};
    bz_status status = bz_job_run(job, &host, &error);
    c->finish = bz_job_finish(job);
    bz_job_free(job);
    if (c->error.code) { /* aborted for that reason */
        error = c->error;
    } else if (status == BZ_ABORTED && c->ended && !c->cancelled) {
        return BZ_OK; /* the turn ended before the job: a stop string */
    }
    if (error.code && err) {
        *err = error;
    }
    return error.code;
}

static bz_status attach_media(chat_run *c, bz_error *err)
{
    const size_t n = bz_turn_media(c->turn);
    bz_status status = BZ_OK;
    if (n != c->o->n_media) {
        return n && !c->o->n_media
                   ? bz_fail(err, BZ_BAD_REQUEST,
                             "The request has image, audio or video content (image_url, "
                             "input_audio, video_url); encode it and pass it in "
                             "bz_chat_options.media.")
                   : bz_fail(err, BZ_BAD_REQUEST,
                             "The request has %zu images, audio clips and videos; %zu were passed.",
                             n, c->o->n_media);
    }
    for (size_t i = 0; i < n && status == BZ_OK; i++) {
        status = bz_turn_attach(c->turn, i, c->o->media[i], err);
    }
    return status;
}

/* Settings that are read but cannot be obeyed here. */
static bz_status check_settings(const chat_run *c, bz_error *err)
{
    bool has_seed;
    const bz_generate_options *o = bz_turn_options(c->turn, &has_seed);
    const bz_sampling *s = &o->sampling;
    if (o->log_probs) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "logprobs is false: bz_chat does not return them; generate with a session.");
    }
    const bool samples = s->greedy || s->temperature != 0 || s->top_k || s->top_p != 0 ||
                         s->min_p != 0 || s->repetition != 0 || s->presence != 0 ||
                         s->frequency != 0 || s->window || s->n_bias;
    if (c->model->text.config.canvas && samples) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "temperature, top_p, penalties and the like do not apply to a diffusion "
                       "model; leave them out.");
    }
    return BZ_OK;
}

static bz_status prefill(chat_run *c, bz_error *err)
{
    const uint64_t reused = bz_session_get_stats(c->session).reused;
    uint32_t snapshot_at;
    size_t n;
    bz_job *job = NULL;
    bz_turn_prompt(c->turn, &n, &snapshot_at);
    c->prompt_tokens = n;
    bz_status status = bz_turn_prefill(c->session, c->turn, &job, err);
    if (status == BZ_OK) {
        status = run_job(c, job, err);
    }
    c->reused = bz_session_get_stats(c->session).reused - reused;
    return status;
}

/* No more tokens: parts that were held back. */
static bz_status flush_turn(chat_run *c, bz_error *err)
{
    const bz_status status = bz_turn_push(c->turn, -1, err);
    if (status != BZ_OK) {
        return status;
    }
    drain(c);
    if (c->error.code && err) {
        *err = c->error;
    }
    return c->cancelled ? bz_fail(err, BZ_ABORTED, "Stopped on request.") : c->error.code;
}

static bz_status generate(chat_run *c, bz_error *err)
{
    bool has_seed;
    bz_generate_options o = *bz_turn_options(c->turn, &has_seed);
    bz_job *job = NULL;
    o.sampling.seed = has_seed ? o.sampling.seed : c->o->seed;
    bz_status status = bz_session_generate(c->session, &o, &job, err);
    if (status == BZ_OK) {
        status = run_job(c, job, err);
    }
    if (status == BZ_OK && !c->ended) {
        status = flush_turn(c, err);
    }
    c->finish = bz_turn_finish(c->turn, c->finish);
    return status;
}

/* ---- the answer ------------------------------------------------------------------- */

static const char *finish_reason(const chat_run *c)
{
    return c->finish == BZ_FINISH_LENGTH || c->finish == BZ_FINISH_CONTEXT ? "length"
           : c->n_calls                                                    ? "tool_calls"
                                                                           : "stop";
}

static void put_message(bz_json *j, const chat_run *c)
{
    bz_json_object(j);
    bz_json_put_text(j, "role", "assistant");
    if (c->content.n || !c->n_calls) {
        bz_json_put_str(j, "content", (bz_str){c->content.text, c->content.n});
    } else {
        bz_json_put_text(j, "content", NULL);
    }
    if (c->thinking.n) {
        bz_json_put_str(j, "reasoning_content", (bz_str){c->thinking.text, c->thinking.n});
    }
    if (c->n_calls) {
        bz_arena arena = {0};
        const bz_json_node *calls = NULL;
        bz_json_key(j, "tool_calls");
        if (bz_json_read(&calls, c->calls.text, c->calls.n, &arena, NULL) == BZ_OK) {
            bz_json_node_write(j, calls);
        } else {
            j->failed = true; /* no memory */
        }
        bz_arena_free(&arena);
    }
    bz_json_end(j);
}

static bz_status write_answer(const chat_run *c, char **answer, bz_error *err)
{
    bz_json_buffer text = {0};
    bz_json j;
    bz_json_init(&j, bz_json_to_buffer, &text);
    bz_json_object(&j);
    bz_json_put_text(&j, "object", "chat.completion");
    bz_json_put_text(&j, "model", c->model->name);
    bz_json_key(&j, "choices");
    bz_json_array(&j);
    bz_json_object(&j);
    bz_json_put_uint(&j, "index", 0);
    bz_json_key(&j, "message");
    put_message(&j, c);
    bz_json_put_text(&j, "finish_reason", finish_reason(c));
    bz_json_end(&j);
    bz_json_end(&j);
    if (bz_turn_left_out(c->turn)) {
        bz_json_key(&j, "context_shift");
        bz_json_object(&j);
        bz_json_put_uint(&j, "left_out", bz_turn_left_out(c->turn));
        bz_json_end(&j);
    }
    bz_json_key(&j, "usage");
    bz_json_object(&j);
    bz_json_put_uint(&j, "prompt_tokens", c->prompt_tokens);
    bz_json_put_uint(&j, "completion_tokens", c->generated);
    bz_json_put_uint(&j, "total_tokens", c->prompt_tokens + c->generated);
    bz_json_key(&j, "prompt_tokens_details");
    bz_json_object(&j);
    bz_json_put_uint(&j, "cached_tokens", c->reused);
    bz_json_end(&j);
    bz_json_end(&j);
    bz_json_end(&j);
    if (!bz_json_finish(&j)) {
        free(text.text);
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the answer.");
    }
    *answer = text.text;
    return BZ_OK;
}

/* ---- the call --------------------------------------------------------------------- */

static bz_status run(chat_run *c, const char *request, size_t len, char **answer, bz_error *err)
{
    bz_status status = bz_turn_new_media(&c->turn, c->model, request, len, err);
    if (status == BZ_OK) {
        status = check_settings(c, err);
    }
    if (status == BZ_OK) {
        status = attach_media(c, err);
    }
    if (status == BZ_OK && !c->session) {
        status = bz_session_new(&c->session, c->model, c->o->session_options, err);
    }
    if (status == BZ_OK) {
        status = bz_turn_fit(c->turn, c->session->context, true, err);
    }
    if (status == BZ_OK) {
        status = prefill(c, err);
    }
    if (status == BZ_OK) {
        status = generate(c, err);
    }
    if (status == BZ_OK && c->n_calls && !(append(&c->calls, "]", 1))) {
        status = bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the answer.");
    }
    return status == BZ_OK ? write_answer(c, answer, err) : status;
}

bz_status bz_chat(const bz_model *model, const char *request, size_t len,
                  const bz_chat_options *options, char **answer, bz_error *err)
{
    bz_chat_options o;
    chat_run c = {.o = &o, .model = model};
    *answer = NULL;
    bz_status status = BZ_READ_CHAT(&o, options, err);
    if (status == BZ_OK) {
        status = BZ_READ_HOST(&c.host, o.host, err);
    }
    if (status == BZ_OK && o.session && o.session->model != model) {
        status = bz_fail(err, BZ_BAD_REQUEST, "The session belongs to another model.");
    }
    if (status == BZ_OK && !append(&c.calls, "[", 1)) {
        status = bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the answer.");
    }
    if (status == BZ_OK) {
        c.session = o.session;
        status = run(&c, request, len, answer, err);
    }
    bz_turn_free(c.turn);
    if (c.session != o.session) {
        bz_session_free(c.session);
    }
    free(c.content.text);
    free(c.thinking.text);
    free(c.calls.text);
    return status;
}
