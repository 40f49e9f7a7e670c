#include "server/api/answer.h"

#include <stdlib.h>
#include <string.h>

/* ---- for forms ---------------------------------------------------------------------------------
 */

void answer_json(answer *a, bz_json *j)
{
    bz_json_init(j, bz_json_to_buffer, &a->out);
}

void answer_text(answer *a, const char *text)
{
    a->failed |= !bz_json_to_buffer(&a->out, text, strlen(text));
}

const char *answer_model(const answer *a)
{
    return a->model && *a->model ? a->model : engine_model_name(a->work);
}

void answer_put_raw(bz_json *j, const char *json, size_t n)
{
    bz_json_number(j, (bz_str){json, n}); /* written unchanged */
}

void answer_put_list(bz_json *j, const char *key, const bz_json_buffer *objects)
{
    bz_json_key(j, key);
    bz_json_array(j);
    if (objects->n) {
        answer_put_raw(j, objects->text, objects->n);
    }
    bz_json_end(j);
}

void answer_put_shift(bz_json *j, const answer *a)
{
    if (a->left_out) {
        bz_json_key(j, "context_shift");
        bz_json_object(j);
        bz_json_put_uint(j, "left_out", a->left_out);
        bz_json_end(j);
    }
}

bool answer_has_log_probs(const answer_choice *c)
{
    return c->log_probs.n > c->log_probs_sent;
}

void answer_put_log_probs(bz_json *j, answer_choice *c)
{
    bz_json_key(j, "logprobs");
    if (!answer_has_log_probs(c)) {
        bz_json_null(j);
        return;
    }
    const bz_str objects = answer_take_log_probs(c);
    bz_json_object(j);
    bz_json_key(j, "content");
    bz_json_array(j);
    answer_put_raw(j, objects.data, objects.len);
    bz_json_end(j);
    bz_json_end(j);
}

bz_str answer_take_log_probs(answer_choice *c)
{
    const size_t from = c->log_probs_sent ? c->log_probs_sent + 1 : 0; /* a comma */
    if (!answer_has_log_probs(c)) {
        return (bz_str){"", 0};
    }
    c->log_probs_sent = c->log_probs.n;
    return (bz_str){c->log_probs.text + from, c->log_probs.n - from};
}

/* ---- events ------------------------------------------------------------------------------------
 */

static bool append_object(bz_json_buffer *list, const char *json, size_t n)
{
    return (list->n == 0 || bz_json_to_buffer(list, ",", 1)) && bz_json_to_buffer(list, json, n);
}

static bool add_call(answer *a, answer_choice *c, const engine_event *e)
{
    bz_arena arena = {0};
    const bz_json_node *call;
    bz_json_buffer text = {0};
    bz_json j;
    bool ok = bz_json_read(&call, e->text, e->len, &arena, NULL) == BZ_OK;
    if (ok) {
        bz_json_init(&j, bz_json_to_buffer, &text);
        a->form->call(a, &j, bz_json_string(bz_json_get(call, "name")),
                      bz_json_get(call, "arguments"), c->n_calls++);
        c->last_call = c->calls.n + (c->calls.n > 0); /* after a comma */
        ok = bz_json_finish(&j) && append_object(&c->calls, text.text, text.n);
    }
    free(text.text);
    bz_arena_free(&arena);
    return ok;
}

static void add_event(answer *a, const engine_event *e)
{
    answer_choice *c = &a->choices[e->choice];
    bool ok = true;
    switch (e->kind) {
    case ENGINE_THINKING: ok = bz_json_to_buffer(&c->thinking, e->text, e->len); break;
    case ENGINE_ANSWER:
    case ENGINE_BROKEN_CALL: ok = bz_json_to_buffer(&c->text, e->text, e->len); break;
    case ENGINE_CALL: ok = !a->form->call || add_call(a, c, e); break;
    case ENGINE_LOG_PROB: ok = append_object(&c->log_probs, e->text, e->len); break;
    case ENGINE_LEFT_OUT: a->left_out = strtoull(e->text, NULL, 10); break;
    case ENGINE_VECTORS:
    case ENGINE_CALL_BEGIN: break;
    case ENGINE_END:
        c->ended = true;
        c->finish = e->finish;
        break;
    }
    a->failed |= !ok;
}

static void put_stream_error(answer *a)
{
    const bool sse = strcmp(a->form->stream_type, "text/event-stream") == 0;
    bz_json j;
    answer_text(a, sse ? "data: " : "");
    answer_json(a, &j);
    api_put_error(&j, a->form->style, engine_error(a->work));
    answer_text(a, sse ? "\n\n" : "\n");
}

/* Takes what the engine has produced. */
static engine_state receive(answer *a)
{
    engine_event *events;
    const engine_state state = engine_poll(a->work, &events);
    if (a->stream && !a->begun && (state == ENGINE_RUNNING || state == ENGINE_DONE)) {
        a->begun = true;
        a->form->begin(a);
    }
    for (const engine_event *e = events; e; e = e->next) {
        add_event(a, e);
        if (a->stream || a->form->follows_events) {
            a->form->event(a, e);
        }
    }
    engine_events_free(events);
    if (!a->complete && (state == ENGINE_DONE || state == ENGINE_FAILED)) {
        a->complete = true;
        if (a->stream && state == ENGINE_DONE) {
            a->form->end(a);
        } else if (a->stream && a->begun) {
            put_stream_error(a);
        }
    }
    return state;
}

/* ---- sending -----------------------------------------------------------------------------------
 */

static stream_state fill(void *user, char *room, size_t n, size_t *put)
{
    answer *a = user;
    if (a->sent == a->out.n) {
        a->sent = a->out.n = 0;
        receive(a);
    }
    const size_t left = a->out.n - a->sent;
    *put = left < n ? left : n;
    if (*put) {
        memcpy(room, a->out.text + a->sent, *put);
        a->sent += *put;
    }
    if (a->failed) {
        return STREAM_FAILED;
    }
    return a->sent < a->out.n ? STREAM_MORE : a->complete ? STREAM_END : STREAM_WAIT;
}

static void ended(void *user)
{
    answer *a = user;
    engine_release(a->work);
    for (uint32_t i = 0; i < a->n_choices; i++) {
        free(a->choices[i].text.text);
        free(a->choices[i].thinking.text);
        free(a->choices[i].calls.text);
        free(a->choices[i].log_probs.text);
    }
    free(a->choices);
    free(a->model);
    a->free_settings(a->settings);
    free(a->out.text);
    free(a);
}

static void resume(void *user, exchange *x)
{
    answer *a = user;
    const engine_state state = receive(a);
    if (state == ENGINE_FAILED && !a->begun) {
        api_error(x, a->form->style, engine_error(a->work));
    } else if (a->stream && a->begun) {
        exchange_header(x, "Cache-Control", "no-cache");
        exchange_stream(x, 200, a->form->stream_type,
                        (exchange_task){.fill = fill, .ended = ended, .user = a});
    } else if (state == ENGINE_DONE) {
        a->form->whole(a);
        if (a->failed) {
            exchange_text(x, 503, "Not enough memory for the answer.");
        } else {
            exchange_bytes(x, 200, "application/json", a->out.text, a->out.n);
        }
    }
}

void answer_start(api *owner, exchange *x, const answer_form *form, engine_request *r,
                  uint32_t n_choices, bool stream, const char *id_prefix, void *settings)
{
    bz_error err = {0};
    answer *a = calloc(1, sizeof *a);
    answer_choice *choices = calloc(n_choices ? n_choices : 1, sizeof *choices);
    char *model = r->model ? strdup(r->model) : NULL;
    r->client = exchange_client(x);
    r->program = exchange_program(x);
    engine_work *w = a && choices ? engine_submit(owner->engine, r, &err) : NULL;
    if (!w) {
        engine_request_free(r);
        err.code = err.code ? err.code : BZ_OUT_OF_MEMORY;
        free(a);
        free(choices);
        free(model);
        (form->free_settings ? form->free_settings : free)(settings);
        api_error(x, form->style, &err);
        return;
    }
    *a = (answer){.api = owner,
                  .form = form,
                  .work = w,
                  .stream = stream,
                  .model = model,
                  .created = os_clock(),
                  .settings = settings,
                  .free_settings = form->free_settings ? form->free_settings : free,
                  .choices = choices,
                  .n_choices = n_choices};
    api_id(owner, id_prefix, a->id);
    exchange_later(x, (exchange_task){.resume = resume, .ended = ended, .user = a});
}
