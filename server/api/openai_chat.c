/* POST /v1/chat/completions. */
#include <stdlib.h>
#include <string.h>

#include "server/api/openai.h"

/* ---- calls -------------------------------------------------------------------------------------
 */

static void put_call(answer *a, bz_json *j, bz_str name, const bz_json_node *arguments,
                     uint32_t index)
{
    char id[API_ID_SIZE];
    bz_json_object(j);
    if (a->stream) {
        bz_json_put_uint(j, "index", index);
    }
    bz_json_put_text(j, "id", api_id(a->api, "call_", id));
    bz_json_put_text(j, "type", "function");
    bz_json_key(j, "function");
    bz_json_object(j);
    bz_json_put_str(j, "name", name);
    openai_put_arguments(a, j, arguments);
    bz_json_end(j);
    bz_json_end(j);
}

/* ---- streams -----------------------------------------------------------------------------------
 */

static const openai_settings *settings_of(const answer *a)
{
    return a->settings;
}

static void begin_chunk(answer *a, bz_json *j, uint32_t choice)
{
    openai_begin_event(a, j);
    openai_begin_object(j, a, "chat.completion.chunk");
    bz_json_key(j, "choices");
    bz_json_array(j);
    bz_json_object(j);
    bz_json_put_uint(j, "index", choice);
    bz_json_key(j, "delta");
    bz_json_object(j);
}

static void end_chunk(answer *a, bz_json *j, uint32_t choice, const char *finish)
{
    bz_json_end(j); /* delta */
    answer_put_log_probs(j, &a->choices[choice]);
    bz_json_put_text(j, "finish_reason", finish);
    bz_json_end(j);
    bz_json_end(j);
    if (settings_of(a)->include_usage) {
        bz_json_key(j, "usage");
        bz_json_null(j);
    }
    if (finish) {
        answer_put_shift(j, a);
    }
    bz_json_end(j);
    openai_end_event(a, j);
}

static void begin(answer *a)
{
    for (uint32_t i = 0; i < a->n_choices; i++) {
        bz_json j;
        begin_chunk(a, &j, i);
        bz_json_put_text(&j, "role", "assistant");
        bz_json_put_text(&j, "content", "");
        end_chunk(a, &j, i, NULL);
    }
}

static void event(answer *a, const engine_event *e)
{
    answer_choice *c = &a->choices[e->choice];
    const char *finish = e->kind == ENGINE_END ? openai_finish(c) : NULL;
    bz_json j;
    if (e->kind == ENGINE_LOG_PROB || e->kind == ENGINE_CALL_BEGIN || e->kind == ENGINE_LEFT_OUT) {
        return;
    }
    begin_chunk(a, &j, e->choice);
    switch (e->kind) {
    case ENGINE_THINKING:
        bz_json_put_str(&j, "reasoning_content", (bz_str){e->text, e->len});
        break;
    case ENGINE_CALL:
        bz_json_key(&j, "tool_calls");
        bz_json_array(&j);
        answer_put_raw(&j, c->calls.text + c->last_call, c->calls.n - c->last_call);
        bz_json_end(&j);
        break;
    case ENGINE_END: break;
    default: bz_json_put_str(&j, "content", (bz_str){e->text, e->len}); break;
    }
    end_chunk(a, &j, e->choice, finish);
}

static void end(answer *a)
{
    openai_end_stream(a, "chat.completion.chunk");
}

/* ---- whole answers -----------------------------------------------------------------------------
 */

static void put_message(bz_json *j, const answer_choice *c)
{
    bz_json_key(j, "message");
    bz_json_object(j);
    bz_json_put_text(j, "role", "assistant");
    if (c->n_calls && c->text.n == 0) {
        bz_json_put_text(j, "content", NULL);
    } else {
        bz_json_put_str(j, "content", (bz_str){c->text.text ? c->text.text : "", c->text.n});
    }
    if (c->thinking.n) {
        bz_json_put_str(j, "reasoning_content", (bz_str){c->thinking.text, c->thinking.n});
    }
    bz_json_put_text(j, "refusal", NULL);
    if (c->n_calls) {
        answer_put_list(j, "tool_calls", &c->calls);
    }
    bz_json_end(j);
}

static void whole(answer *a)
{
    bz_json j;
    answer_json(a, &j);
    openai_begin_object(&j, a, "chat.completion");
    bz_json_key(&j, "choices");
    bz_json_array(&j);
    for (uint32_t i = 0; i < a->n_choices; i++) {
        answer_choice *c = &a->choices[i];
        bz_json_object(&j);
        bz_json_put_uint(&j, "index", i);
        put_message(&j, c);
        answer_put_log_probs(&j, c);
        bz_json_put_text(&j, "finish_reason", openai_finish(c));
        bz_json_end(&j);
    }
    bz_json_end(&j);
    openai_put_usage(&j, a);
    answer_put_shift(&j, a);
    bz_json_end(&j);
    a->failed |= !bz_json_finish(&j);
}

static const answer_form form = {.style = API_OPENAI,
                                 .stream_type = "text/event-stream",
                                 .begin = begin,
                                 .event = event,
                                 .end = end,
                                 .whole = whole,
                                 .call = put_call};

/* ---- the endpoint ------------------------------------------------------------------------------
 */

void openai_chat(void *user, exchange *x)
{
    static const char *const skip[] = {"n", "stream", "stream_options", "store", NULL};
    bz_arena arena = {0};
    const bz_json_node *root;
    bz_error err = {0};
    bool stream;
    if (!api_read_body(x, API_OPENAI, &arena, &root)) {
        return;
    }
    const bz_json_node *messages = bz_json_get(root, "messages");
    engine_request r = {.task = ENGINE_CHAT, .model = api_copy_text(bz_json_get(root, "model"))};
    openai_settings *settings = calloc(1, sizeof *settings);
    if (!settings || !api_copy_without(root, skip, &r)) {
        bz_fail(&err, BZ_OUT_OF_MEMORY, "Not enough memory for the request.");
    } else if (bz_json_is(messages, BZ_JSON_ARRAY) && messages->n == 0) {
        bz_fail(&err, BZ_BAD_REQUEST, "messages is empty.");
    } else {
        openai_read_common(root, &stream, &r.choices, settings, &err);
    }
    bz_arena_free(&arena);
    if (err.code) {
        engine_request_free(&r);
        free(settings);
        api_error(x, API_OPENAI, &err);
        return;
    }
    answer_start(user, x, &form, &r, r.choices, stream, "chatcmpl-", settings);
}
