/* Any body to any endpoint, and any events of the engine: must not crash or leak; a request that
 * reaches the engine is JSON; every response, and every line of a stream, is JSON. The HTTP layer
 * and the engine are replaced by the functions below.
 *
 * Input: a byte for the endpoint, a byte for the length of the events, the events, the body. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/api/api.h"
#include "server/engine/models.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void must_be_json(const char *text, size_t n)
{
    bz_arena arena = {0};
    const bz_json_node *root;
    must(bz_json_read(&root, text, n, &arena, NULL) == BZ_OK);
    bz_arena_free(&arena);
}

/* ---- the exchange ---------------------------------------------------------------------------- */

struct exchange {
    http_head head;
    bz_str body;
    exchange_task task;
    bool has_task, answered, streaming;
    bool lines; /* NDJSON, else server-sent events */
};

const http_head *exchange_head(const exchange *x)
{
    return &x->head;
}

bz_str exchange_body(const exchange *x)
{
    return x->body;
}

uint64_t exchange_client(const exchange *x)
{
    (void)x;
    return 1;
}

uint64_t exchange_program(const exchange *x)
{
    (void)x;
    return 1;
}

void exchange_header(exchange *x, const char *name, const char *format, ...)
{
    (void)x;
    must(name[0] && format[0]);
}

void exchange_bytes(exchange *x, int status, const char *type, const void *bytes, size_t n)
{
    must(!x->answered && status >= 200 && status < 600);
    x->answered = true;
    if (strcmp(type, "application/json") == 0) {
        must_be_json(bytes, n);
    }
}

void exchange_text(exchange *x, int status, const char *sentence)
{
    exchange_bytes(x, status, "text/plain", sentence, strlen(sentence));
}

void exchange_later(exchange *x, exchange_task task)
{
    must(!x->answered && !x->has_task);
    x->task = task;
    x->has_task = true;
}

void exchange_stream(exchange *x, int status, const char *type, exchange_task task)
{
    must(!x->answered && status == 200);
    x->answered = x->streaming = true;
    x->lines = strcmp(type, "application/x-ndjson") == 0;
    x->task = task;
    x->has_task = true;
}

/* ---- the engine ------------------------------------------------------------------------------ */

struct engine_work {
    engine_request r;
    const uint8_t *events; /* [left] */
    size_t left;
    uint32_t choices;
    bool ended;
};

static const uint8_t *events;
static size_t n_events;
static engine_usage usage = {.prompt_tokens = 3, .answer_tokens = 4};
static bz_error failure = {BZ_NUMERIC, "The model's output is not a number."};

engine_work *engine_submit(engine *e, engine_request *r, bz_error *err)
{
    engine_work *w = n_events ? calloc(1, sizeof *w) : NULL;
    (void)e;
    if (r->json) {
        must_be_json(r->json, r->n_json);
    }
    must(r->task != ENGINE_PROMPT || r->n_prompts > 0);
    if (!w) {
        engine_request_free(r);
        bz_fail(err, BZ_QUOTA, "The server is busy.");
        return NULL;
    }
    const size_t n = r->task == ENGINE_PROMPT ? r->n_prompts : 1;
    w->choices = (uint32_t)n * (r->choices ? r->choices : 1);
    w->r = *r;
    *r = (engine_request){0};
    w->events = events;
    w->left = n_events;
    return w;
}

static engine_event *new_event(engine_event_kind kind, uint32_t choice, const char *text, size_t n)
{
    engine_event *e = calloc(1, sizeof *e + n + 1);
    must(e != NULL);
    e->kind = kind;
    e->choice = choice;
    e->len = n;
    e->finish = BZ_FINISH_END;
    memcpy(e->text, text, n);
    return e;
}

/* Each byte is an event; texts are the bytes after it. A function's result is one JSON value. */
engine_state engine_poll(engine_work *w, engine_event **out)
{
    static const char call[] = "{\"name\":\"f\",\"arguments\":{\"a\":[1,null]}}",
                      log_prob[] =
                          "{\"token\":\"a\",\"logprob\":-1,\"bytes\":[97],\"top_logprobs\":[]}";
    *out = NULL;
    if (w->r.task == ENGINE_RUN) {
        *out = new_event(ENGINE_ANSWER, 0, "null", 4);
        return ENGINE_DONE;
    }
    if (w->r.task == ENGINE_EMBED) { /* two numbers for each text */
        const size_t bytes = 2 * sizeof(float) * w->r.n_prompts;
        char *zeros = calloc(bytes + 1, 1);
        must(zeros != NULL);
        *out = new_event(ENGINE_VECTORS, 0, zeros, bytes);
        free(zeros);
        return ENGINE_DONE;
    }
    if (w->left == 0) {
        w->ended = true;
        return ENGINE_DONE;
    }
    const uint8_t byte = *w->events++;
    const size_t n = --w->left < 7 ? w->left : 7;
    const uint32_t choice = byte / 8 % w->choices;
    const char *text = (const char *)w->events;
    switch (byte % 8) {
    case 0: return ENGINE_WAITING;
    case 1: *out = new_event(ENGINE_THINKING, choice, text, n); break;
    case 2: *out = new_event(ENGINE_ANSWER, choice, text, n); break;
    case 3: *out = new_event(ENGINE_BROKEN_CALL, choice, text, n); break;
    case 4: *out = new_event(ENGINE_CALL, choice, call, sizeof call - 1); break;
    case 5: *out = new_event(ENGINE_LOG_PROB, choice, log_prob, sizeof log_prob - 1); break;
    case 6: *out = new_event(ENGINE_END, choice, "", 0); break;
    default:
        w->left = byte == 255 ? 0 : w->left;
        return byte == 255 ? ENGINE_FAILED : ENGINE_RUNNING;
    }
    return ENGINE_RUNNING;
}

void engine_events_free(engine_event *list)
{
    while (list) {
        engine_event *next = list->next;
        free(list);
        list = next;
    }
}

const engine_usage *engine_usage_of(const engine_work *w)
{
    (void)w;
    return &usage;
}

const bz_error *engine_error(const engine_work *w)
{
    (void)w;
    return &failure;
}

const char *engine_model_name(const engine_work *w)
{
    (void)w;
    return "pebble";
}

void engine_release(engine_work *w)
{
    if (w) {
        engine_request_free(&w->r);
        free(w);
    }
}

engine_figures engine_get_figures(engine *e)
{
    (void)e;
    return (engine_figures){.requests = 1};
}

models *engine_models(engine *e)
{
    (void)e;
    return NULL; /* functions on the engine's thread are not called */
}

const engine_options *engine_get_options(const engine *e)
{
    (void)e;
    return NULL;
}

/* ---- one request ------------------------------------------------------------------------------
 */

static void check_stream(const char *text, size_t n, bool lines)
{
    while (n) {
        const char *end = memchr(text, '\n', n);
        must(end != NULL); /* every line is whole */
        const size_t length = (size_t)(end - text);
        if (lines) {
            must_be_json(text, length);
        } else if (length > 6 && memcmp(text, "data: ", 6) == 0) {
            if (length != 12 || memcmp(text, "data: [DONE]", 12) != 0) {
                must_be_json(text + 6, length - 6);
            }
        } else {
            must(length == 0 || memcmp(text, "event: ", 7) == 0);
        }
        n -= length + 1;
        text = end + 1;
    }
}

static void take_stream(exchange *x)
{
    bz_json_buffer all = {0};
    stream_state state = STREAM_MORE;
    for (int i = 0; i < 2000 && (state == STREAM_MORE || state == STREAM_WAIT); i++) {
        char room[512];
        size_t put = 0;
        state = x->task.fill(x->task.user, room, sizeof room, &put);
        must(put <= sizeof room && bz_json_to_buffer(&all, room, put));
    }
    if (state == STREAM_END) {
        check_stream(all.text ? all.text : "", all.n, x->lines);
    }
    free(all.text);
}

/* Endpoints that use the network or write to the store have targets of their own. */
static bool is_left_out(const char *path)
{
    return strcmp(path, "/api/pull") == 0 || strcmp(path, "/api/copy") == 0 ||
           strcmp(path, "/api/delete") == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    api a = {0};
    server_route routes[API_MAX_ROUTES];
    const size_t n = api_routes(&a, routes);
    if (size < 2 || data[1] + 2u > size) {
        return 0;
    }
    const server_route *r = &routes[data[0] % n];
    char head[256];
    const int length = snprintf(head, sizeof head, "POST %s%s HTTP/1.1\r\nHost: a\r\n\r\n", r->path,
                                r->path[strlen(r->path) - 1] == '/' ? "x%2fy" : "");
    exchange x = {0};
    must(http_head_read(&x.head, head, (size_t)length) == HTTP_DONE);
    events = data + 2;
    n_events = data[1];
    x.body = (bz_str){(const char *)data + 2 + n_events, size - 2 - n_events};
    if (is_left_out(r->path)) {
        return 0;
    }
    r->handle(r->user, &x);
    for (int i = 0; i < 300 && !x.answered; i++) {
        must(x.has_task);
        x.task.resume(x.task.user, &x);
    }
    if (x.streaming) {
        take_stream(&x);
    }
    if (x.has_task && x.task.ended) {
        x.task.ended(x.task.user);
    }
    return 0;
}
