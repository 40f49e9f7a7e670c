/* Ollama's API: routes, and what its endpoints share. */
#include "server/api/ollama.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void not_found(void *user, exchange *x)
{
    (void)user;
    api_refuse(x, API_OLLAMA, 404, "there is no such endpoint; docs/API.md lists them");
}

const server_route api_ollama_routes[] = {
    {"/api/", HTTP_GET | HTTP_POST | HTTP_DELETE, API_SMALL_BODY_MAX, not_found, NULL, false},
    {"/api/version", HTTP_GET, 0, ollama_version, NULL, false},
    {"/api/tags", HTTP_GET, 0, ollama_tags, NULL, false},
    {"/api/ps", HTTP_GET, 0, ollama_ps, NULL, false},
    {"/api/show", HTTP_POST, API_SMALL_BODY_MAX, ollama_show, NULL, false},
    {"/api/generate", HTTP_POST, API_BODY_MAX, ollama_generate, NULL, false},
    {"/api/embed", HTTP_POST, API_BODY_MAX, ollama_embed, NULL, false},
    {"/api/embeddings", HTTP_POST, API_BODY_MAX, ollama_embeddings, NULL, false},
    {"/api/chat", HTTP_POST, API_BODY_MAX, ollama_chat, NULL, false},
    {"/api/pull", HTTP_POST, API_SMALL_BODY_MAX, ollama_pull, NULL, false},
    {"/api/copy", HTTP_POST, API_SMALL_BODY_MAX, ollama_copy, NULL, false},
    {"/api/delete", HTTP_DELETE, API_SMALL_BODY_MAX, ollama_delete, NULL, false},
    {"/api/create", HTTP_POST, API_SMALL_BODY_MAX, ollama_no_creation, NULL, false},
    {"/api/push", HTTP_POST, API_SMALL_BODY_MAX, ollama_no_creation, NULL, false},
    {"/api/blobs/", HTTP_GET | HTTP_POST, API_SMALL_BODY_MAX, ollama_no_creation, NULL, false},
    {NULL, 0, 0, NULL, NULL, false}};

/* ---- requests ----------------------------------------------------------------------------------
 */

/* Options of the runtime, which do not change an answer, and those that the engine reads. */
static bool is_known(bz_str key)
{
    static const char *const known[] = {
        "temperature",    "top_k",           "top_p",      "min_p",
        "seed",           "num_predict",     "num_ctx",    "stop",
        "repeat_penalty", "repeat_last_n",   "num_thread", "presence_penalty",
        "num_keep",       "num_batch",       "num_gpu",    "frequency_penalty",
        "main_gpu",       "use_mmap",        "use_mlock",  "low_vram",
        "numa",           "f16_kv",          "vocab_only", "logits_all",
        "embedding_only", "penalize_newline"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (bz_str_is(key, known[i])) {
            return true;
        }
    }
    return false;
}

/* Options for which only the value that turns them off can be obeyed. */
static bool is_off(bz_str key, const bz_json_node *node)
{
    static const struct {
        const char *key;
        double off;
    } only[] = {{"mirostat", 0}, {"tfs_z", 1}, {"typical_p", 1}};
    double value;
    for (size_t i = 0; i < sizeof only / sizeof *only; i++) {
        if (bz_str_is(key, only[i].key)) {
            return bz_json_to_double(node, &value) && value == only[i].off;
        }
    }
    return bz_str_is(key, "mirostat_tau") || bz_str_is(key, "mirostat_eta"); /* of mirostat */
}

static bz_status check_options(const bz_json_node *options, engine_request *r, bz_error *err)
{
    if (!api_is_absent(options) && options->kind != BZ_JSON_OBJECT) {
        return bz_fail(err, BZ_BAD_REQUEST, "options is an object.");
    }
    for (const bz_json_node *item = bz_json_first(options); item; item = item->next) {
        if (!api_is_absent(item) && !is_known(item->key) && !is_off(item->key, item)) {
            char shown[200];
            return bz_fail(err, BZ_BAD_REQUEST, "The option '%s' is not supported.",
                           bz_str_show(item->key, shown));
        }
    }
    const bz_json_node *context = bz_json_get(options, "num_ctx");
    int64_t n;
    if (!api_is_absent(context)) {
        if (!bz_json_to_int(context, &n) || n < 0 || n > 1 << 30) {
            return bz_fail(err, BZ_BAD_REQUEST, "num_ctx is a whole number from 0 to %d.", 1 << 30);
        }
        r->min_context = (uint32_t)n;
    }
    return BZ_OK;
}

bz_status ollama_read_common(const bz_json_node *root, engine_request *r, bz_error *err)
{
    const bz_json_node *model = bz_json_get(root, "model"), *name = bz_json_get(root, "name"),
                       *keep = bz_json_get(root, "keep_alive");
    model = api_is_absent(model) ? name : model; /* older clients say name */
    r->model = api_copy_text(model);
    if (!api_is_absent(keep)) {
        if (!api_read_duration(keep, &r->keep_alive)) {
            return bz_fail(err, BZ_BAD_REQUEST,
                           "keep_alive is a duration such as \"5m\", or a number of seconds.");
        }
        r->has_keep_alive = true;
    }
    return check_options(bz_json_get(root, "options"), r, err);
}

/* ---- answers -----------------------------------------------------------------------------------
 */

void ollama_begin_line(bz_json *j, const answer *a)
{
    char time[API_TIME_SIZE];
    bz_json_object(j);
    bz_json_put_text(j, "model", answer_model(a));
    bz_json_put_text(j, "created_at", api_time(time));
}

void ollama_put_end(bz_json *j, const answer *a, const char *reason)
{
    const engine_usage *u = engine_usage_of(a->work);
    bz_json_put_bool(j, "done", true);
    bz_json_put_text(j, "done_reason", reason);
    bz_json_put_uint(j, "total_duration", u->total_ns);
    bz_json_put_uint(j, "load_duration", u->load_ns);
    answer_put_shift(j, a);
    if (u->prompt_tokens) {
        bz_json_put_uint(j, "prompt_eval_count", u->prompt_tokens);
        bz_json_put_uint(j, "prompt_eval_duration", u->prompt_ns);
        bz_json_put_uint(j, "eval_count", u->answer_tokens);
        bz_json_put_uint(j, "eval_duration", u->answer_ns);
    }
}

const char *ollama_finish(const answer_choice *c)
{
    return c->finish == BZ_FINISH_LENGTH || c->finish == BZ_FINISH_CONTEXT ? "length" : "stop";
}

void ollama_put_call(answer *a, bz_json *j, bz_str name, const bz_json_node *arguments,
                     uint32_t index)
{
    (void)a;
    bz_json_object(j);
    bz_json_key(j, "function");
    bz_json_object(j);
    bz_json_put_uint(j, "index", index);
    bz_json_put_str(j, "name", name);
    bz_json_key(j, "arguments");
    bz_json_node_write(j, arguments);
    bz_json_end(j);
    bz_json_end(j);
}

void ollama_put_log_probs(bz_json *j, answer_choice *c)
{
    const bz_str objects = answer_take_log_probs(c);
    if (objects.len) {
        bz_json_key(j, "logprobs");
        bz_json_array(j);
        answer_put_raw(j, objects.data, objects.len);
        bz_json_end(j);
    }
}

/* ---- models ------------------------------------------------------------------------------------
 */

void ollama_put_details(bz_json *j, const engine_model *m)
{
    const model_details *d = &m->details;
    bz_json_key(j, "details");
    bz_json_object(j);
    bz_json_put_text(j, "parent_model", "");
    bz_json_put_text(j, "format", "gguf");
    bz_json_put_text(j, "family", d->family);
    bz_json_key(j, "families");
    bz_json_array(j);
    bz_json_text(j, d->family);
    bz_json_end(j);
    bz_json_put_text(j, "parameter_size", d->parameters);
    bz_json_put_text(j, "quantization_level", d->quantization);
    bz_json_end(j);
}

void ollama_put_capabilities(bz_json *j, const model_abilities *takes)
{
    bz_json_key(j, "capabilities");
    bz_json_array(j);
    if (takes->embeds) {
        bz_json_text(j, "embedding");
    } else {
        bz_json_text(j, "completion");
        bz_json_text(j, "tools");
        bz_json_text(j, "thinking");
    }
    if (takes->vision) {
        bz_json_text(j, "vision");
    }
    if (takes->audio) {
        bz_json_text(j, "audio");
    }
    bz_json_end(j);
}

typedef struct model_list {
    bz_json *j;
    models *all;
} model_list;

static bool put_model(void *user, const engine_model *m)
{
    const model_list *list = user;
    bz_json *j = list->j;
    model_abilities takes;
    char time[API_TIME_SIZE];
    bz_json_object(j);
    bz_json_put_text(j, "name", m->name);
    bz_json_put_text(j, "model", m->name);
    bz_json_put_text(j, "modified_at", api_time_of(m->details.modified, time));
    bz_json_put_uint(j, "size", m->details.size);
    bz_json_put_text(j, "digest", m->details.digest);
    ollama_put_details(j, m);
    if (models_abilities(list->all, m, &takes, NULL) == BZ_OK) { /* else it cannot be run */
        ollama_put_capabilities(j, &takes);
    }
    bz_json_end(j);
    return true;
}

static bz_status list_models(void *user, engine *e, engine_model *m, bz_json *j, bz_error *err)
{
    (void)user;
    (void)m;
    bz_json_object(j);
    bz_json_key(j, "models");
    bz_json_array(j);
    model_list list = {j, engine_models(e)};
    const bz_status status = models_each(list.all, put_model, &list, err);
    bz_json_end(j);
    bz_json_end(j);
    return status;
}

void ollama_tags(void *user, exchange *x)
{
    api_run_plain(user, x, API_OLLAMA, list_models);
}

void ollama_version(void *user, exchange *x)
{
    char text[64];
    (void)user;
    const int n = snprintf(text, sizeof text, "{\"version\":\"%s\"}", bz_version());
    exchange_bytes(x, 200, "application/json", text, (size_t)n);
}
