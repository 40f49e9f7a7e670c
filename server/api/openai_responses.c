/* POST /v1/responses: an answer as a list of items (thinking, messages, calls), whole or as events.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/api/openai_responses.h"

typedef enum item_kind { ITEM_NONE, ITEM_REASONING, ITEM_MESSAGE } item_kind;

typedef struct state {
    bz_json_buffer items; /* finished ones, JSON objects separated by commas */
    item_kind open;       /* the item that text is added to */
    char id[API_ID_SIZE];
    bz_json_buffer text; /* of the open item */
    uint32_t index;      /* of the open item, or of the next */
    uint64_t sequence;
    bz_json_buffer tools; /* of the request */
} state;

static void free_state(void *user)
{
    state *s = user;
    if (s) {
        free(s->items.text);
        free(s->text.text);
        free(s->tools.text);
        free(s);
    }
}

/* ---- items -------------------------------------------------------------------------------------
 */

/* {"type": "output_text", ...} or {"type": "reasoning_text", ...} */
static void put_part(bz_json *j, item_kind kind, bz_str text)
{
    bz_json_object(j);
    bz_json_put_text(j, "type", kind == ITEM_MESSAGE ? "output_text" : "reasoning_text");
    bz_json_put_str(j, "text", text);
    if (kind == ITEM_MESSAGE) {
        bz_json_key(j, "annotations");
        bz_json_array(j);
        bz_json_end(j);
        bz_json_key(j, "logprobs");
        bz_json_array(j);
        bz_json_end(j);
    }
    bz_json_end(j);
}

static void put_item(bz_json *j, const state *s, bool complete)
{
    bz_json_object(j);
    bz_json_put_text(j, "id", s->id);
    bz_json_put_text(j, "type", s->open == ITEM_MESSAGE ? "message" : "reasoning");
    bz_json_put_text(j, "status", complete ? "completed" : "in_progress");
    if (s->open == ITEM_MESSAGE) {
        bz_json_put_text(j, "role", "assistant");
    } else {
        bz_json_key(j, "summary");
        bz_json_array(j);
        bz_json_end(j);
    }
    bz_json_key(j, "content");
    bz_json_array(j);
    if (complete) {
        put_part(j, s->open, (bz_str){s->text.text ? s->text.text : "", s->text.n});
    }
    bz_json_end(j);
    bz_json_end(j);
}

static void put_call(bz_json *j, const state *s, const bz_json_node *call, bz_str arguments,
                     bool complete)
{
    char id[API_ID_SIZE + 8];
    snprintf(id, sizeof id, "call_%s", s->id + strcspn(s->id, "_") + 1);
    bz_json_object(j);
    bz_json_put_text(j, "id", s->id);
    bz_json_put_text(j, "type", "function_call");
    bz_json_put_text(j, "status", complete ? "completed" : "in_progress");
    bz_json_put_text(j, "call_id", id);
    bz_json_put_str(j, "name", bz_json_string(bz_json_get(call, "name")));
    bz_json_put_str(j, "arguments", complete ? arguments : (bz_str){"", 0});
    bz_json_end(j);
}

/* ---- events ------------------------------------------------------------------------------------
 */

static bool begin_event(answer *a, bz_json *j, const char *type)
{
    state *s = a->settings;
    if (!a->stream) {
        return false;
    }
    answer_text(a, "event: ");
    answer_text(a, type);
    answer_text(a, "\n");
    openai_begin_event(a, j);
    bz_json_object(j);
    bz_json_put_text(j, "type", type);
    bz_json_put_uint(j, "sequence_number", s->sequence++);
    return true;
}

static void end_event(answer *a, bz_json *j)
{
    bz_json_end(j);
    openai_end_event(a, j);
}

/* The place of the open item, and of its only part. */
static void put_place(bz_json *j, const state *s, bool part)
{
    bz_json_put_text(j, "item_id", s->id);
    bz_json_put_uint(j, "output_index", s->index);
    if (part) {
        bz_json_put_uint(j, "content_index", 0);
    }
}

static void begin_item_event(answer *a, bz_json *j, const char *type)
{
    const state *s = a->settings;
    if (begin_event(a, j, type)) {
        bz_json_put_uint(j, "output_index", s->index);
        bz_json_key(j, "item");
    }
}

static void part_event(answer *a, const char *type, bz_str text)
{
    const state *s = a->settings;
    bz_json j;
    if (begin_event(a, &j, type)) {
        put_place(&j, s, true);
        bz_json_key(&j, "part");
        put_part(&j, s->open, text);
        end_event(a, &j);
    }
}

/* "delta" or "text" of the open item. */
static void text_event(answer *a, const char *type, const char *key, bz_str text)
{
    const state *s = a->settings;
    bz_json j;
    if (begin_event(a, &j, type)) {
        put_place(&j, s, true);
        bz_json_put_str(&j, key, text);
        if (s->open == ITEM_MESSAGE) {
            bz_json_key(&j, "logprobs");
            bz_json_array(&j);
            bz_json_end(&j);
        }
        end_event(a, &j);
    }
}

static void keep_item(answer *a, const bz_json_buffer *item)
{
    state *s = a->settings;
    a->failed |= (s->items.n && !bz_json_to_buffer(&s->items, ",", 1)) ||
                 !bz_json_to_buffer(&s->items, item->text ? item->text : "", item->n);
}

static void close_item(answer *a)
{
    state *s = a->settings;
    if (s->open == ITEM_NONE) {
        return;
    }
    const bool message = s->open == ITEM_MESSAGE;
    const bz_str text = {s->text.text ? s->text.text : "", s->text.n};
    bz_json_buffer item = {0};
    bz_json j;
    text_event(a, message ? "response.output_text.done" : "response.reasoning_text.done", "text",
               text);
    if (message) {
        part_event(a, "response.content_part.done", text);
    }
    bz_json_init(&j, bz_json_to_buffer, &item);
    put_item(&j, s, true);
    a->failed |= !bz_json_finish(&j);
    keep_item(a, &item);
    if (a->stream) {
        begin_item_event(a, &j, "response.output_item.done");
        answer_put_raw(&j, item.text, item.n);
        end_event(a, &j);
    }
    free(item.text);
    s->text.n = 0;
    s->open = ITEM_NONE;
    s->index++;
}

static void open_item(answer *a, item_kind kind)
{
    state *s = a->settings;
    bz_json j;
    if (s->open == kind) {
        return;
    }
    close_item(a);
    s->open = kind;
    api_id(a->api, kind == ITEM_MESSAGE ? "msg_" : "rs_", s->id);
    if (a->stream) {
        begin_item_event(a, &j, "response.output_item.added");
        put_item(&j, s, false);
        end_event(a, &j);
    }
    if (kind == ITEM_MESSAGE) {
        part_event(a, "response.content_part.added", (bz_str){"", 0});
    }
}

static void add_text(answer *a, item_kind kind, bz_str text)
{
    state *s = a->settings;
    open_item(a, kind);
    a->failed |= !bz_json_to_buffer(&s->text, text.data, text.len);
    text_event(
        a, kind == ITEM_MESSAGE ? "response.output_text.delta" : "response.reasoning_text.delta",
        "delta", text);
}

static void arguments_event(answer *a, const char *type, const char *key, bz_str arguments)
{
    bz_json j;
    if (begin_event(a, &j, type)) {
        put_place(&j, a->settings, false);
        bz_json_put_str(&j, key, arguments);
        end_event(a, &j);
    }
}

static void add_call(answer *a, const bz_json_node *call)
{
    state *s = a->settings;
    bz_json_buffer arguments = {0}, item = {0};
    bz_json j;
    close_item(a);
    api_id(a->api, "fc_", s->id);
    bz_json_init(&j, bz_json_to_buffer, &arguments);
    bz_json_node_write(&j, bz_json_get(call, "arguments"));
    a->failed |= !bz_json_finish(&j);
    const bz_str text = {arguments.text ? arguments.text : "", arguments.n};
    bz_json_init(&j, bz_json_to_buffer, &item);
    put_call(&j, s, call, text, true);
    a->failed |= !bz_json_finish(&j);
    keep_item(a, &item);
    if (a->stream) {
        begin_item_event(a, &j, "response.output_item.added");
        put_call(&j, s, call, text, false);
        end_event(a, &j);
        arguments_event(a, "response.function_call_arguments.delta", "delta", text);
        arguments_event(a, "response.function_call_arguments.done", "arguments", text);
        begin_item_event(a, &j, "response.output_item.done");
        answer_put_raw(&j, item.text, item.n);
        end_event(a, &j);
    }
    free(arguments.text);
    free(item.text);
    s->index++;
}

static void event(answer *a, const engine_event *e)
{
    const bz_str text = {e->text, e->len};
    bz_arena arena = {0};
    const bz_json_node *call;
    switch (e->kind) {
    case ENGINE_THINKING: add_text(a, ITEM_REASONING, text); break;
    case ENGINE_ANSWER:
    case ENGINE_BROKEN_CALL: add_text(a, ITEM_MESSAGE, text); break;
    case ENGINE_CALL:
        if (bz_json_read(&call, e->text, e->len, &arena, NULL) == BZ_OK) {
            add_call(a, call);
        } else {
            a->failed = true;
        }
        bz_arena_free(&arena);
        break;
    case ENGINE_END: close_item(a); break;
    case ENGINE_LOG_PROB:
    case ENGINE_LEFT_OUT:
    case ENGINE_VECTORS:
    case ENGINE_CALL_BEGIN: break;
    }
}

/* ---- the response ------------------------------------------------------------------------------
 */

static void put_usage(bz_json *j, const answer *a)
{
    const engine_usage *u = engine_usage_of(a->work);
    bz_json_key(j, "usage");
    bz_json_object(j);
    bz_json_put_uint(j, "input_tokens", u->prompt_tokens);
    bz_json_key(j, "input_tokens_details");
    bz_json_object(j);
    bz_json_put_uint(j, "cached_tokens", u->cached_tokens);
    bz_json_put_uint(j, "cache_write_tokens", 0); /* what is billed for writing a cache */
    bz_json_end(j);
    bz_json_put_uint(j, "output_tokens", u->answer_tokens);
    bz_json_key(j, "output_tokens_details");
    bz_json_object(j);
    bz_json_put_uint(j, "reasoning_tokens", u->thinking_tokens);
    bz_json_end(j);
    bz_json_put_uint(j, "total_tokens", u->prompt_tokens + u->answer_tokens);
    bz_json_end(j);
}

static bool is_cut(const answer *a)
{
    const bz_finish f = a->choices[0].finish;
    return f == BZ_FINISH_LENGTH || f == BZ_FINISH_CONTEXT;
}

static void put_response(bz_json *j, const answer *a, bool complete)
{
    const state *s = a->settings;
    bz_json_object(j);
    bz_json_put_text(j, "id", a->id);
    bz_json_put_text(j, "object", "response");
    bz_json_put_int(j, "created_at", a->created);
    bz_json_put_text(j, "status",
                     !complete   ? "in_progress"
                     : is_cut(a) ? "incomplete"
                                 : "completed");
    bz_json_put_text(j, "error", NULL);
    bz_json_key(j, "incomplete_details");
    if (complete && is_cut(a)) {
        bz_json_object(j);
        bz_json_put_text(j, "reason", "max_output_tokens");
        bz_json_end(j);
    } else {
        bz_json_null(j);
    }
    bz_json_put_text(j, "model", answer_model(a));
    answer_put_list(j, "output", &s->items);
    bz_json_put_bool(j, "parallel_tool_calls", true);
    bz_json_put_text(j, "tool_choice", "auto");
    bz_json_key(j, "tools");
    answer_put_raw(j, s->tools.text, s->tools.n);
    if (complete) {
        put_usage(j, a);
        answer_put_shift(j, a);
    }
    bz_json_end(j);
}

static void response_event(answer *a, const char *type, bool complete)
{
    bz_json j;
    if (begin_event(a, &j, type)) {
        bz_json_key(&j, "response");
        put_response(&j, a, complete);
        end_event(a, &j);
    }
}

static void begin(answer *a)
{
    response_event(a, "response.created", false);
    response_event(a, "response.in_progress", false);
}

static void end(answer *a)
{
    response_event(a, is_cut(a) ? "response.incomplete" : "response.completed", true);
}

static void whole(answer *a)
{
    bz_json j;
    answer_json(a, &j);
    put_response(&j, a, true);
    a->failed |= !bz_json_finish(&j);
}

static const answer_form form = {.style = API_OPENAI,
                                 .stream_type = "text/event-stream",
                                 .begin = begin,
                                 .event = event,
                                 .end = end,
                                 .whole = whole,
                                 .follows_events = true,
                                 .free_settings = free_state};

/* ---- the endpoint ------------------------------------------------------------------------------
 */

static bool keep_tools(state *s, const bz_json_node *tools)
{
    bz_json j;
    bz_json_init(&j, bz_json_to_buffer, &s->tools);
    if (bz_json_is(tools, BZ_JSON_ARRAY)) {
        bz_json_node_write(&j, tools);
    } else {
        bz_json_array(&j);
        bz_json_end(&j);
    }
    return bz_json_finish(&j);
}

void openai_responses(void *user, exchange *x)
{
    bz_arena arena = {0};
    const bz_json_node *root;
    bz_error err = {0};
    bool stream = false;
    if (!api_read_body(x, API_OPENAI, &arena, &root)) {
        return;
    }
    engine_request r = {.task = ENGINE_CHAT, .model = api_copy_text(bz_json_get(root, "model"))};
    state *s = calloc(1, sizeof *s);
    if (!s || !keep_tools(s, bz_json_get(root, "tools"))) {
        bz_fail(&err, BZ_OUT_OF_MEMORY, "Not enough memory for the request.");
    } else if (api_read_bool(root, "stream", false, &stream, &err)) {
        responses_read(root, &r, &err);
    }
    bz_arena_free(&arena);
    if (err.code) {
        engine_request_free(&r);
        free_state(s);
        api_error(x, API_OPENAI, &err);
        return;
    }
    answer_start(user, x, &form, &r, 1, stream, "resp_", s);
}
