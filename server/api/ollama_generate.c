/* POST /api/generate. */
#include <stdlib.h>
#include <string.h>

#include "server/api/ollama.h"

/* ---- answers -----------------------------------------------------------------------------------
 */

typedef struct settings {
    const char *reason; /* of a request that only loads or unloads a model; NULL: another */
    bool raw;
} settings;

static void begin(answer *a)
{
    (void)a;
}

static void begin_line(answer *a, bz_json *j, bz_str text, bz_str thinking)
{
    answer_json(a, j);
    ollama_begin_line(j, a);
    bz_json_put_str(j, "response", text);
    if (thinking.len) {
        bz_json_put_str(j, "thinking", thinking);
    }
}

static void event(answer *a, const engine_event *e)
{
    const bz_str text = {e->text, e->len}, nothing = {"", 0};
    const bool thinking = e->kind == ENGINE_THINKING;
    bz_json j;
    if (!thinking && e->kind != ENGINE_ANSWER && e->kind != ENGINE_BROKEN_CALL) {
        return;
    }
    begin_line(a, &j, thinking ? nothing : text, thinking ? text : nothing);
    ollama_put_log_probs(&j, &a->choices[0]);
    bz_json_put_bool(&j, "done", false);
    bz_json_end(&j);
    a->failed |= !bz_json_finish(&j);
    answer_text(a, "\n");
}

static void end_line(answer *a, bz_json *j)
{
    const settings *s = a->settings;
    const engine_usage *u = engine_usage_of(a->work);
    ollama_put_log_probs(j, &a->choices[0]);
    ollama_put_end(j, a, s->reason ? s->reason : ollama_finish(&a->choices[0]));
    if (u->n_ids && !s->raw) {
        bz_json_key(j, "context");
        bz_json_array(j);
        for (size_t i = 0; i < u->n_ids; i++) {
            bz_json_int(j, u->ids[i]);
        }
        bz_json_end(j);
    }
    bz_json_end(j);
    a->failed |= !bz_json_finish(j);
}

static void end(answer *a)
{
    bz_json j;
    begin_line(a, &j, (bz_str){"", 0}, (bz_str){"", 0});
    end_line(a, &j);
    answer_text(a, "\n");
}

static void whole(answer *a)
{
    const answer_choice *c = &a->choices[0];
    bz_json j;
    begin_line(a, &j, (bz_str){c->text.text ? c->text.text : "", c->text.n},
               (bz_str){c->thinking.text, c->thinking.n});
    end_line(a, &j);
}

static const answer_form form = {.style = API_OLLAMA,
                                 .stream_type = "application/x-ndjson",
                                 .begin = begin,
                                 .event = event,
                                 .end = end,
                                 .whole = whole,
                                 .call = ollama_put_call};

/* ---- requests ----------------------------------------------------------------------------------
 */

static bz_status check(const bz_json_node *root, bz_error *err)
{
    static const struct {
        const char *key, *advice;
    } texts[] = {{"suffix", "text cannot be inserted in the middle"},
                 {"template", "the model's own template is used; for another one send raw: true"}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (bz_json_string(bz_json_get(root, texts[i].key)).len) {
            return bz_fail(err, BZ_BAD_REQUEST, "%s is not supported: %s.", texts[i].key,
                           texts[i].advice);
        }
    }
    static const char *const strings[] = {"prompt", "system"};
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        const bz_json_node *node = bz_json_get(root, strings[i]);
        if (!api_is_absent(node) && node->kind != BZ_JSON_STRING) {
            return bz_fail(err, BZ_BAD_REQUEST, "%s is a text.", strings[i]);
        }
    }
    return BZ_OK;
}

static bz_status read_context(const bz_json_node *node, engine_request *r, bz_error *err)
{
    if (api_is_absent(node)) {
        return BZ_OK;
    }
    r->before = calloc((size_t)node->n + 1, sizeof *r->before);
    for (const bz_json_node *item = bz_json_first(node); r->before && item; item = item->next) {
        int64_t id;
        if (!bz_json_to_int(item, &id) || id < 0 || id > INT32_MAX) {
            return bz_fail(err, BZ_BAD_REQUEST, "context is a list of tokens.");
        }
        r->before[r->n_before++] = (int32_t)id;
    }
    return r->before ? BZ_OK : bz_fail(err, BZ_OUT_OF_MEMORY, "Not enough memory for the request.");
}

static void put_message(bz_json *j, const char *role, bz_str text, const bz_json_node *images)
{
    bz_json_object(j);
    bz_json_put_text(j, "role", role);
    bz_json_put_str(j, "content", text);
    if (images) {
        bz_json_key(j, "images");
        bz_json_node_write(j, images);
    }
    bz_json_end(j);
}

/* The prompt as a conversation; of a raw prompt only the settings. */
static bool write_json(const bz_json_node *root, bool raw, engine_request *r)
{
    static const char *const skip[] = {"prompt",  "system",   "images",     "raw",
                                       "context", "stream",   "keep_alive", "suffix",
                                       "model",   "template", "messages",   NULL};
    const bz_json_node *images = bz_json_get(root, "images");
    const bz_str system = bz_json_string(bz_json_get(root, "system")),
                 prompt = bz_json_string(bz_json_get(root, "prompt"));
    api_json b;
    api_json_begin(&b);
    api_copy_members(&b.j, root, skip);
    bz_json_key(&b.j, "messages");
    bz_json_array(&b.j);
    if (!raw) {
        if (system.len) {
            put_message(&b.j, "system", system, NULL);
        }
        put_message(&b.j, "user", prompt, api_is_absent(images) ? NULL : images);
    }
    bz_json_end(&b.j);
    return api_json_end(&b, r);
}

static bool take_raw_prompt(const bz_json_node *root, engine_request *r)
{
    const bz_str prompt = bz_json_string(bz_json_get(root, "prompt"));
    r->task = ENGINE_PROMPT;
    r->prompts = calloc(1, sizeof *r->prompts);
    if (!r->prompts) {
        return false;
    }
    r->n_prompts = 1;
    r->prompts[0] = (engine_prompt){.text = api_copy_bytes(prompt), .len = prompt.len};
    return r->prompts[0].text != NULL;
}

static bz_status read_request(const bz_json_node *root, engine_request *r, settings *s,
                              bool *stream, bz_error *err)
{
    bz_status status = ollama_read_common(root, r, err);
    status = status == BZ_OK ? check(root, err) : status;
    status = status == BZ_OK ? read_context(bz_json_get(root, "context"), r, err) : status;
    if (status != BZ_OK || !api_read_bool(root, "stream", true, stream, err) ||
        !api_read_bool(root, "raw", false, &s->raw, err)) {
        return err->code;
    }
    r->task = ENGINE_CHAT;
    r->report_ids = true;
    if (bz_json_string(bz_json_get(root, "prompt")).len == 0 &&
        !bz_json_first(bz_json_get(root, "images"))) {
        const bool unload = r->has_keep_alive && r->keep_alive == 0;
        r->task = unload ? ENGINE_UNLOAD : ENGINE_LOAD;
        s->reason = unload ? "unload" : "load";
    } else if (s->raw && !take_raw_prompt(root, r)) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "Not enough memory for the request.");
    }
    if (s->raw && (r->n_before || bz_json_first(bz_json_get(root, "images")))) {
        return bz_fail(err, BZ_BAD_REQUEST, "A raw prompt has no context and no images.");
    }
    return write_json(root, s->raw, r)
               ? BZ_OK
               : bz_fail(err, BZ_OUT_OF_MEMORY, "Not enough memory for the request.");
}

void ollama_generate(void *user, exchange *x)
{
    bz_arena arena = {0};
    const bz_json_node *root;
    bz_error err = {0};
    bool stream = true;
    if (!api_read_body(x, API_OLLAMA, &arena, &root)) {
        return;
    }
    engine_request r = {0};
    settings *s = calloc(1, sizeof *s);
    if (!s) {
        bz_fail(&err, BZ_OUT_OF_MEMORY, "Not enough memory for the request.");
    } else {
        read_request(root, &r, s, &stream, &err);
    }
    bz_arena_free(&arena);
    if (err.code) {
        engine_request_free(&r);
        free(s);
        api_error(x, API_OLLAMA, &err);
        return;
    }
    answer_start(user, x, &form, &r, 1, stream && !s->reason, "", s);
}
