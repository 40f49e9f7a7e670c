/* POST /api/chat. */
#include <stdlib.h>
#include <string.h>

#include "server/api/ollama.h"

static void begin_message(answer *a, bz_json *j)
{
    answer_json(a, j);
    ollama_begin_line(j, a);
    bz_json_key(j, "message");
    bz_json_object(j);
    bz_json_put_text(j, "role", "assistant");
}

static void end_line(answer *a, bz_json *j)
{
    bz_json_end(j);
    a->failed |= !bz_json_finish(j);
    answer_text(a, "\n");
}

/* ---- streams -----------------------------------------------------------------------------------
 */

static void begin(answer *a)
{
    (void)a;
}

static void event(answer *a, const engine_event *e)
{
    answer_choice *c = &a->choices[e->choice];
    const bool call = e->kind == ENGINE_CALL, thinking = e->kind == ENGINE_THINKING;
    bz_json j;
    if (!call && !thinking && e->kind != ENGINE_ANSWER && e->kind != ENGINE_BROKEN_CALL) {
        return;
    }
    begin_message(a, &j);
    bz_json_put_str(&j, "content", call || thinking ? (bz_str){"", 0} : (bz_str){e->text, e->len});
    if (thinking) {
        bz_json_put_str(&j, "thinking", (bz_str){e->text, e->len});
    } else if (call) {
        bz_json_key(&j, "tool_calls");
        bz_json_array(&j);
        answer_put_raw(&j, c->calls.text + c->last_call, c->calls.n - c->last_call);
        bz_json_end(&j);
    }
    bz_json_end(&j);
    ollama_put_log_probs(&j, c);
    bz_json_put_bool(&j, "done", false);
    end_line(a, &j);
}

/* The reason of a request that only loads or unloads a model. */
static const char *reason_of(const answer *a)
{
    return a->settings ? a->settings : ollama_finish(&a->choices[0]);
}

static void end(answer *a)
{
    bz_json j;
    begin_message(a, &j);
    bz_json_put_text(&j, "content", "");
    bz_json_end(&j);
    ollama_put_end(&j, a, reason_of(a));
    end_line(a, &j);
}

static void whole(answer *a)
{
    answer_choice *c = &a->choices[0];
    bz_json j;
    begin_message(a, &j);
    bz_json_put_str(&j, "content", (bz_str){c->text.text ? c->text.text : "", c->text.n});
    if (c->thinking.n) {
        bz_json_put_str(&j, "thinking", (bz_str){c->thinking.text, c->thinking.n});
    }
    if (c->n_calls) {
        answer_put_list(&j, "tool_calls", &c->calls);
    }
    bz_json_end(&j);
    ollama_put_log_probs(&j, c);
    ollama_put_end(&j, a, reason_of(a));
    bz_json_end(&j);
    a->failed |= !bz_json_finish(&j);
}

static const answer_form form = {.style = API_OLLAMA,
                                 .stream_type = "application/x-ndjson",
                                 .begin = begin,
                                 .event = event,
                                 .end = end,
                                 .whole = whole,
                                 .call = ollama_put_call};

/* ---- the endpoint ------------------------------------------------------------------------------
 */

void ollama_chat(void *user, exchange *x)
{
    static const char *const skip[] = {"stream", "keep_alive", "truncate", "shift", NULL};
    bz_arena arena = {0};
    const bz_json_node *root;
    bz_error err = {0};
    bool stream = true, shifts = false;
    char *reason = NULL;
    if (!api_read_body(x, API_OLLAMA, &arena, &root)) {
        return;
    }
    engine_request r = {.task = ENGINE_CHAT};
    const bz_json_node *messages = bz_json_get(root, "messages");
    if (ollama_read_common(root, &r, &err) == BZ_OK &&
        api_read_bool(root, "stream", true, &stream, &err) &&
        api_read_bool(root, "truncate", true, &r.shift, &err) &&
        api_read_bool(root, "shift", false, &shifts, &err)) {
        if (shifts) {
            bz_fail(&err, BZ_BAD_REQUEST,
                    "shift is false: an answer that fills the context ends there, with the "
                    "done_reason length.");
        }
        if (api_is_absent(messages) || (messages->kind == BZ_JSON_ARRAY && !messages->n)) {
            const bool unload = r.has_keep_alive && r.keep_alive == 0;
            r.task = unload ? ENGINE_UNLOAD : ENGINE_LOAD;
            reason = strdup(unload ? "unload" : "load");
        }
        if (!api_copy_without(root, skip, &r)) {
            bz_fail(&err, BZ_OUT_OF_MEMORY, "Not enough memory for the request.");
        }
    }
    bz_arena_free(&arena);
    if (err.code) {
        engine_request_free(&r);
        free(reason);
        api_error(x, API_OLLAMA, &err);
        return;
    }
    answer_start(user, x, &form, &r, 1, stream && !reason, "", reason);
}
