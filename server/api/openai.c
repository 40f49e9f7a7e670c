/* OpenAI's API: routes, and what its endpoints share. */
#include "server/api/openai.h"

#include <stdlib.h>
#include <string.h>

#include "server/engine/models.h"

static void not_found(void *user, exchange *x)
{
    (void)user;
    api_refuse(x, API_OPENAI, 404, "There is no such endpoint; docs/API.md lists them.");
}

const server_route api_openai_routes[] = {
    {"/v1/", HTTP_GET | HTTP_POST | HTTP_DELETE, API_SMALL_BODY_MAX, not_found, NULL, false},
    {"/v1/models", HTTP_GET, 0, openai_models, NULL, false},
    {"/v1/models/", HTTP_GET, 0, openai_model, NULL, false},
    {"/v1/completions", HTTP_POST, API_BODY_MAX, openai_completions, NULL, false},
    {"/v1/responses", HTTP_POST, API_BODY_MAX, openai_responses, NULL, false},
    {"/v1/embeddings", HTTP_POST, API_BODY_MAX, openai_embeddings, NULL, false},
    {"/v1/chat/completions", HTTP_POST, API_BODY_MAX, openai_chat, NULL, false},
    {NULL, 0, 0, NULL, NULL, false}};

/* ---- requests ----------------------------------------------------------------------------------
 */

bz_status openai_read_common(const bz_json_node *root, bool *stream, uint32_t *n,
                             openai_settings *settings, bz_error *err)
{
    const bz_json_node *count = bz_json_get(root, "n"),
                       *options = bz_json_get(root, "stream_options");
    int64_t choices = 1;
    if (!api_read_bool(root, "stream", false, stream, err)) {
        return err->code;
    }
    if (!api_is_absent(options) && options->kind != BZ_JSON_OBJECT) {
        return bz_fail(err, BZ_BAD_REQUEST, "stream_options is an object.");
    }
    if (!api_is_absent(options) && !*stream) {
        return bz_fail(err, BZ_BAD_REQUEST, "stream_options needs stream: true.");
    }
    if (!api_read_bool(options, "include_usage", false, &settings->include_usage, err)) {
        return err->code;
    }
    if (!api_is_absent(count) &&
        (!bz_json_to_int(count, &choices) || choices < 1 || choices > OPENAI_MAX_CHOICES)) {
        return bz_fail(err, BZ_BAD_REQUEST, "n is a whole number from 1 to %d.",
                       OPENAI_MAX_CHOICES);
    }
    *n = (uint32_t)choices;
    return BZ_OK;
}

/* ---- answers -----------------------------------------------------------------------------------
 */

const char *openai_finish(const answer_choice *c)
{
    return c->finish == BZ_FINISH_LENGTH || c->finish == BZ_FINISH_CONTEXT ? "length"
           : c->n_calls                                                    ? "tool_calls"
                                                                           : "stop";
}

void openai_put_usage(bz_json *j, const answer *a)
{
    const engine_usage *u = engine_usage_of(a->work);
    bz_json_key(j, "usage");
    bz_json_object(j);
    bz_json_put_uint(j, "prompt_tokens", u->prompt_tokens);
    bz_json_put_uint(j, "completion_tokens", u->answer_tokens);
    bz_json_put_uint(j, "total_tokens", u->prompt_tokens + u->answer_tokens);
    bz_json_key(j, "prompt_tokens_details");
    bz_json_object(j);
    bz_json_put_uint(j, "cached_tokens", u->cached_tokens);
    bz_json_end(j);
    bz_json_key(j, "completion_tokens_details");
    bz_json_object(j);
    bz_json_put_uint(j, "reasoning_tokens", u->thinking_tokens);
    bz_json_end(j);
    bz_json_end(j);
}

void openai_put_arguments(answer *a, bz_json *j, const bz_json_node *arguments)
{
    bz_json_buffer text = {0};
    bz_json inner;
    bz_json_init(&inner, bz_json_to_buffer, &text);
    bz_json_node_write(&inner, arguments);
    a->failed |= !bz_json_finish(&inner);
    bz_json_put_str(j, "arguments", (bz_str){text.text ? text.text : "", text.n});
    free(text.text);
}

void openai_begin_object(bz_json *j, const answer *a, const char *object)
{
    bz_json_object(j);
    bz_json_put_text(j, "id", a->id);
    bz_json_put_text(j, "object", object);
    bz_json_put_int(j, "created", a->created);
    bz_json_put_text(j, "model", answer_model(a));
    bz_json_put_text(j, "system_fingerprint", bz_version());
}

void openai_begin_event(answer *a, bz_json *j)
{
    answer_text(a, "data: ");
    answer_json(a, j);
}

void openai_end_event(answer *a, bz_json *j)
{
    a->failed |= !bz_json_finish(j);
    answer_text(a, "\n\n");
}

void openai_end_stream(answer *a, const char *object)
{
    const openai_settings *s = a->settings;
    if (s->include_usage) {
        bz_json j;
        openai_begin_event(a, &j);
        openai_begin_object(&j, a, object);
        bz_json_key(&j, "choices");
        bz_json_array(&j);
        bz_json_end(&j);
        openai_put_usage(&j, a);
        bz_json_end(&j);
        openai_end_event(a, &j);
    }
    answer_text(a, "data: [DONE]\n\n");
}

/* ---- models ------------------------------------------------------------------------------------
 */

static bool put_model(void *user, const engine_model *m)
{
    bz_json *j = user;
    bz_json_object(j);
    bz_json_put_text(j, "id", m->name);
    bz_json_put_text(j, "object", "model");
    bz_json_put_int(j, "created", m->details.modified);
    bz_json_put_text(j, "owned_by", m->path ? "local" : "ollama");
    bz_json_end(j);
    return true;
}

static bz_status list_models(void *user, engine *e, engine_model *m, bz_json *j, bz_error *err)
{
    (void)user;
    (void)m;
    bz_json_object(j);
    bz_json_put_text(j, "object", "list");
    bz_json_key(j, "data");
    bz_json_array(j);
    const bz_status status = models_each(engine_models(e), put_model, j, err);
    bz_json_end(j);
    bz_json_end(j);
    return status;
}

void openai_models(void *user, exchange *x)
{
    api_run_plain(user, x, API_OPENAI, list_models);
}

/* ---- one model ----------------------------------------------------------------------------------
 */

static bz_status run_model(void *user, engine *e, engine_model *none, bz_json *j, bz_error *err)
{
    engine_model *m;
    (void)none;
    const bz_status status = models_find(engine_models(e), user, &m, err);
    if (status == BZ_OK) {
        put_model(j, m);
    }
    return status;
}

/* Names may have encoded characters: "hf.co%2Forg%2Frepo". */
static char *decode_name(bz_str path)
{
    char *name = malloc(path.len + 1);
    size_t n = 0;
    for (size_t i = 0; name && i < path.len; i++) {
        char c = path.data[i];
        if (c == '%' && i + 2 < path.len) {
            const char digits[] = {path.data[i + 1], path.data[i + 2], 0};
            char *end;
            const unsigned long code = strtoul(digits, &end, 16);
            if (*end == 0 && code) {
                c = (char)code;
                i += 2;
            }
        }
        name[n++] = c;
    }
    if (name) {
        name[n] = 0;
    }
    return name;
}

void openai_model(void *user, exchange *x)
{
    static const char prefix[] = "/v1/models/";
    const http_head *h = exchange_head(x);
    const bz_str path = http_text(h, h->path);
    char *name =
        decode_name((bz_str){path.data + sizeof prefix - 1, path.len - (sizeof prefix - 1)});
    if (!name || !*name) {
        free(name);
        api_refuse(x, API_OPENAI, 404, "The path names no model.");
        return;
    }
    engine_request r = {.task = ENGINE_RUN,
                        .without_model = true,
                        .run = run_model,
                        .user = name,
                        .free_user = free};
    api_run(user, x, API_OPENAI, &r);
}
