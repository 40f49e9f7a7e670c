/* What the endpoints share: bodies, errors, calls on the engine's thread. */
#include "server/api/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/os.h"
#include "base/os_program.h"
#include "base/text.h"

static const char JSON_TYPE[] = "application/json";

/* ---- routes ---------------------------------------------------------------------------------- */

size_t api_routes(api *a, server_route out[API_MAX_ROUTES])
{
    const server_route *const lists[] = {api_openai_routes, api_ollama_routes, api_helper_routes};
    size_t n = 0;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        for (const server_route *r = lists[i]; r->path && n < API_MAX_ROUTES; r++) {
            out[n] = *r;
            out[n++].user = a;
        }
    }
    return n;
}

/* ---- requests ---------------------------------------------------------------------------------
 */

/* Names of models, which become C strings. */
static bz_status check_names(const bz_json_node *root, bz_error *err)
{
    static const char *const names[] = {"model", "name", "source", "destination"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const bz_json_node *node = bz_json_get(root, names[i]);
        const bz_str text = bz_json_string(node);
        if (!api_is_absent(node) &&
            (node->kind != BZ_JSON_STRING || (text.len && memchr(text.data, 0, text.len)))) {
            return bz_fail(err, BZ_BAD_REQUEST, "%s is a text without zero bytes.", names[i]);
        }
    }
    return BZ_OK;
}

bool api_read_body(exchange *x, api_style style, bz_arena *arena, const bz_json_node **root)
{
    const bz_str body = exchange_body(x);
    bz_error err = {0};
    bz_status status = body.len ? bz_json_read(root, body.data, body.len, arena, &err)
                                : bz_json_read(root, "{}", 2, arena, &err);
    if (status == BZ_OK && !bz_json_is(*root, BZ_JSON_OBJECT)) {
        status = bz_fail(&err, BZ_BAD_REQUEST, "The request is not a JSON object.");
    }
    status = status == BZ_OK ? check_names(*root, &err) : status;
    if (status != BZ_OK) {
        err.code = err.code == BZ_OUT_OF_MEMORY ? err.code : BZ_BAD_REQUEST;
        api_error(x, style, &err);
        bz_arena_free(arena);
    }
    return status == BZ_OK;
}

bool api_is_absent(const bz_json_node *node)
{
    return !node || node->kind == BZ_JSON_NULL;
}

bool api_read_bool(const bz_json_node *root, const char *key, bool otherwise, bool *out,
                   bz_error *err)
{
    const bz_json_node *node = bz_json_get(root, key);
    *out = api_is_absent(node) ? otherwise : node->kind == BZ_JSON_TRUE;
    if (!api_is_absent(node) && node->kind != BZ_JSON_TRUE && node->kind != BZ_JSON_FALSE) {
        bz_fail(err, BZ_BAD_REQUEST, "%s is true or false.", key);
        return false;
    }
    return true;
}

char *api_copy_text(const bz_json_node *node)
{
    const bz_str s = bz_json_string(node);
    return bz_text_copy(s.data, s.len);
}

void api_json_begin(api_json *b)
{
    *b = (api_json){0};
    bz_json_init(&b->j, bz_json_to_buffer, &b->text);
    bz_json_object(&b->j);
}

bool api_json_end(api_json *b, engine_request *r)
{
    bz_json_end(&b->j);
    if (!bz_json_finish(&b->j)) {
        free(b->text.text);
        return false;
    }
    r->json = b->text.text;
    r->n_json = b->text.n;
    return true;
}

void api_copy_members(bz_json *j, const bz_json_node *root, const char *const *skip)
{
    for (const bz_json_node *item = bz_json_first(root); item; item = item->next) {
        bool skipped = false;
        for (const char *const *s = skip; *s; s++) {
            skipped |= bz_str_is(item->key, *s);
        }
        if (!skipped) {
            bz_json_key_str(j, item->key);
            bz_json_node_write(j, item);
        }
    }
}

char *api_copy_bytes(bz_str s)
{
    char *copy = malloc(s.len + 1);
    if (copy) {
        memcpy(copy, s.data, s.len);
        copy[s.len] = 0;
    }
    return copy;
}

bool api_copy_without(const bz_json_node *root, const char *const *skip, engine_request *r)
{
    api_json b;
    api_json_begin(&b);
    api_copy_members(&b.j, root, skip);
    return api_json_end(&b, r);
}

/* One number with its unit; returns the rest of the text, NULL: not a duration. */
static const char *read_unit(const char *text, double *seconds)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}};
    char *end;
    const double n = strtod(text, &end);
    const size_t unit = strspn(end, "nusmh");
    for (size_t i = 0; end != text && i < sizeof units / sizeof *units; i++) {
        if (strlen(units[i].name) == unit && strncmp(end, units[i].name, unit) == 0) {
            *seconds += n * units[i].seconds;
            return end + unit;
        }
    }
    return NULL;
}

bool api_read_duration(const bz_json_node *node, int64_t *ns)
{
    double seconds = 0;
    if (bz_json_is(node, BZ_JSON_NUMBER)) {
        if (!bz_json_to_double(node, &seconds)) {
            return false;
        }
    } else {
        const bz_str s = bz_json_string(node);
        char text[64], *end;
        if (s.len == 0 || s.len >= sizeof text) {
            return false;
        }
        memcpy(text, s.data, s.len);
        text[s.len] = 0;
        seconds = strtod(text, &end);
        if (*end || end == text) { /* else a number without a unit: seconds */
            seconds = 0;
            const bool negative = text[0] == '-';
            for (const char *p = text + negative; p && *p;) {
                p = read_unit(p, &seconds);
                if (!p) {
                    return false;
                }
            }
            seconds = negative ? -seconds : seconds;
        }
    }
    if (!(seconds < 1e9 && seconds > -1e9)) {
        *ns = -1; /* longer than 30 years: forever */
        return seconds == seconds;
    }
    *ns = seconds < 0 ? -1 : (int64_t)(seconds * 1e9);
    return true;
}

/* ---- errors -----------------------------------------------------------------------------------
 */

int api_status_of(const bz_error *err)
{
    switch (err->code) {
    case BZ_NOT_FOUND: return 404;
    case BZ_BAD_REQUEST:
    case BZ_BAD_SCHEMA:
    case BZ_CONTEXT_FULL: return 400;
    case BZ_QUOTA:
    case BZ_OUT_OF_MEMORY:
    case BZ_ABORTED: return 503;
    default: return 500;
    }
}

static void put_openai_error(bz_json *j, const bz_error *err)
{
    const int status = api_status_of(err);
    bz_json_key(j, "error");
    bz_json_object(j);
    bz_json_put_text(j, "message", err->text);
    bz_json_put_text(j, "type", status < 500 ? "invalid_request_error" : "server_error");
    bz_json_put_text(j, "param", NULL);
    bz_json_put_text(j, "code",
                     err->code == BZ_NOT_FOUND && strncmp(err->text, "model ", 6) == 0
                         ? "model_not_found"
                     : err->code == BZ_CONTEXT_FULL ? "context_length_exceeded"
                                                    : bz_status_name(err->code));
    bz_json_end(j);
}

void api_put_error(bz_json *j, api_style style, const bz_error *err)
{
    bz_json_object(j);
    if (style == API_OPENAI) {
        put_openai_error(j, err);
    } else {
        bz_json_put_text(j, "error", err->text);
    }
    bz_json_end(j);
}

void api_error(exchange *x, api_style style, const bz_error *err)
{
    bz_json_buffer text = {0};
    bz_json j;
    bz_json_init(&j, bz_json_to_buffer, &text);
    api_put_error(&j, style, err);
    if (err->code == BZ_QUOTA) {
        exchange_header(x, "Retry-After", "1");
    }
    if (bz_json_finish(&j)) {
        exchange_bytes(x, api_status_of(err), JSON_TYPE, text.text, text.n);
    } else {
        exchange_text(x, 503, "Not enough memory.");
    }
    free(text.text);
}

void api_refuse(exchange *x, api_style style, int status, const char *sentence)
{
    bz_json_buffer text = {0};
    bz_json j;
    bz_json_init(&j, bz_json_to_buffer, &text);
    bz_json_object(&j);
    if (style == API_OLLAMA) {
        bz_json_put_text(&j, "error", sentence);
    } else {
        bz_json_key(&j, "error");
        bz_json_object(&j);
        bz_json_put_text(&j, "message", sentence);
        bz_json_put_text(&j, "type",
                         status == 401  ? "authentication_error"
                         : status < 500 ? "invalid_request_error"
                                        : "server_error");
        bz_json_put_text(&j, "param", NULL);
        bz_json_put_text(&j, "code", status == 401 ? "invalid_api_key" : NULL);
        bz_json_end(&j);
    }
    bz_json_end(&j);
    if (bz_json_finish(&j)) {
        exchange_bytes(x, status, JSON_TYPE, text.text, text.n);
    } else {
        exchange_text(x, status, sentence);
    }
    free(text.text);
}

static bool begins_with(bz_str s, const char *text)
{
    const size_t n = strlen(text);
    return s.len >= n && memcmp(s.data, text, n) == 0;
}

void api_refuse_early(exchange *x, int status, const char *sentence)
{
    const http_head *h = exchange_head(x);
    const bz_str path = http_text(h, h->path);
    if (begins_with(path, "/api/")) {
        api_refuse(x, API_OLLAMA, status, sentence);
    } else if (begins_with(path, "/v1/")) {
        api_refuse(x, API_OPENAI, status, sentence);
    } else {
        exchange_text(x, status, sentence);
    }
}

/* ---- calls on the engine's thread --------------------------------------------------------------
 */

typedef struct call {
    engine_work *work;
    api_style style;
} call;

static void resume_call(void *user, exchange *x)
{
    call *c = user;
    engine_event *events;
    const engine_state state = engine_poll(c->work, &events);
    if (state == ENGINE_FAILED) {
        api_error(x, c->style, engine_error(c->work));
    } else if (state == ENGINE_DONE && events) {
        exchange_bytes(x, 200, JSON_TYPE, events->text, events->len);
    } else if (state == ENGINE_DONE) {
        exchange_bytes(x, 200, JSON_TYPE, "{}", 2);
    }
    engine_events_free(events);
}

static void end_call(void *user)
{
    call *c = user;
    engine_release(c->work);
    free(c);
}

void api_run(api *a, exchange *x, api_style style, engine_request *r)
{
    bz_error err = {0};
    call *c = calloc(1, sizeof *c);
    r->client = exchange_client(x);
    r->program = exchange_program(x);
    engine_work *w = engine_submit(a->engine, r, &err);
    if (!c || !w) {
        engine_release(w);
        free(c);
        err.code = err.code ? err.code : BZ_OUT_OF_MEMORY;
        api_error(x, style, &err);
        return;
    }
    *c = (call){w, style};
    exchange_later(x, (exchange_task){.resume = resume_call, .ended = end_call, .user = c});
}

void api_run_plain(api *a, exchange *x, api_style style, engine_function run)
{
    engine_request r = {.task = ENGINE_RUN, .without_model = true, .run = run};
    api_run(a, x, style, &r);
}

/* ---- times and ids -----------------------------------------------------------------------------
 */

const char *api_time_of(int64_t seconds, char out[API_TIME_SIZE])
{
    struct tm parts;
    out[0] = 0;
    if (bz_os_date(seconds, &parts)) {
        strftime(out, API_TIME_SIZE, "%Y-%m-%dT%H:%M:%SZ", &parts);
    }
    return out;
}

const char *api_time(char out[API_TIME_SIZE])
{
    char text[API_TIME_SIZE];
    api_time_of(os_clock(), text);
    /* The monotonic clock has nanoseconds; those of the date are unknown. */
    snprintf(out, API_TIME_SIZE, "%.19s.%09lluZ", text,
             (unsigned long long)(bz_os_now() % 1000000000));
    return out;
}

const char *api_id(api *a, const char *prefix, char out[API_ID_SIZE])
{
    snprintf(out, API_ID_SIZE, "%s%llx%08llx", prefix, (unsigned long long)bz_os_now(),
             (unsigned long long)++a->serial);
    return out;
}
