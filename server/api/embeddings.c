/* Vectors of texts: POST /v1/embeddings, /api/embed and /api/embeddings. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "server/api/ollama.h"
#include "server/api/openai.h"

typedef enum embed_form { FORM_OPENAI, FORM_OLLAMA, FORM_OLLAMA_ONE } embed_form;

typedef struct embed_call {
    engine_work *work;
    embed_form form;
    bool base64;
    size_t n;              /* texts */
    engine_event *vectors; /* NULL: not there yet; may come before the end */
} embed_call;

static api_style style_of(embed_form form)
{
    return form == FORM_OPENAI ? API_OPENAI : API_OLLAMA;
}

/* ---- the response ------------------------------------------------------------------------------
 */

/* False: out of memory. */
static bool put_vector(bz_json *j, const char *bytes, size_t d, bool base64)
{
    if (base64) {
        char *text = malloc(bz_base64_size(d * sizeof(float)) + 1);
        if (!text) {
            return false;
        }
        bz_base64_write((const uint8_t *)bytes, d * sizeof(float), text);
        bz_json_text(j, text);
        free(text);
        return true;
    }
    bz_json_array(j);
    for (size_t i = 0; i < d; i++) {
        float v;
        memcpy(&v, bytes + i * sizeof v, sizeof v);
        bz_json_float(j, v);
    }
    bz_json_end(j);
    return true;
}

static bool put_openai(bz_json *j, const embed_call *c, const engine_event *e, size_t d)
{
    const engine_usage *u = engine_usage_of(c->work);
    bool ok = true;
    bz_json_put_text(j, "object", "list");
    bz_json_key(j, "data");
    bz_json_array(j);
    for (size_t i = 0; i < c->n && ok; i++) {
        bz_json_object(j);
        bz_json_put_text(j, "object", "embedding");
        bz_json_put_uint(j, "index", i);
        bz_json_key(j, "embedding");
        ok = put_vector(j, e->text + i * d * sizeof(float), d, c->base64);
        bz_json_end(j);
    }
    bz_json_end(j);
    bz_json_put_text(j, "model", engine_model_name(c->work));
    bz_json_key(j, "usage");
    bz_json_object(j);
    bz_json_put_uint(j, "prompt_tokens", u->prompt_tokens);
    bz_json_put_uint(j, "total_tokens", u->prompt_tokens);
    bz_json_end(j);
    return ok;
}

static bool put_ollama(bz_json *j, const embed_call *c, const engine_event *e, size_t d)
{
    const engine_usage *u = engine_usage_of(c->work);
    bool ok = true;
    if (c->form == FORM_OLLAMA_ONE) {
        bz_json_key(j, "embedding");
        return put_vector(j, e ? e->text : "", d, false);
    }
    bz_json_put_text(j, "model", engine_model_name(c->work));
    bz_json_key(j, "embeddings");
    bz_json_array(j);
    for (size_t i = 0; i < c->n && ok; i++) {
        ok = put_vector(j, e->text + i * d * sizeof(float), d, false);
    }
    bz_json_end(j);
    bz_json_put_uint(j, "total_duration", u->total_ns);
    bz_json_put_uint(j, "load_duration", u->load_ns);
    bz_json_put_uint(j, "prompt_eval_count", u->prompt_tokens);
    return ok;
}

static void respond(const embed_call *c, exchange *x, const engine_event *e)
{
    static const char no_memory[] = "Not enough memory for the vectors.";
    bz_json_buffer text = {0};
    bz_json j;
    if (c->n && !e) {
        api_refuse(x, style_of(c->form), 503, no_memory);
        return;
    }
    const size_t d = c->n ? e->len / sizeof(float) / c->n : 0;
    bz_json_init(&j, bz_json_to_buffer, &text);
    bz_json_object(&j);
    const bool ok = c->form == FORM_OPENAI ? put_openai(&j, c, e, d) : put_ollama(&j, c, e, d);
    bz_json_end(&j);
    if (bz_json_finish(&j) && ok) {
        exchange_bytes(x, 200, "application/json", text.text, text.n);
    } else {
        api_refuse(x, style_of(c->form), 503, no_memory);
    }
    free(text.text);
}

static void keep_vectors(embed_call *c, engine_event *events)
{
    while (events) {
        engine_event *next = events->next;
        events->next = NULL;
        if (events->kind == ENGINE_VECTORS && !c->vectors) {
            c->vectors = events;
        } else {
            engine_events_free(events);
        }
        events = next;
    }
}

static void resume(void *user, exchange *x)
{
    embed_call *c = user;
    engine_event *events;
    const engine_state state = engine_poll(c->work, &events);
    keep_vectors(c, events);
    if (state == ENGINE_FAILED) {
        const bz_error *err = engine_error(c->work);
        if (err->code == BZ_CONTEXT_FULL && c->form != FORM_OPENAI) { /* as Ollama says it */
            api_refuse(x, API_OLLAMA, 400, "the input length exceeds the context length");
        } else {
            api_error(x, style_of(c->form), err);
        }
    } else if (state == ENGINE_DONE) {
        respond(c, x, c->vectors);
    }
}

static void ended(void *user)
{
    embed_call *c = user;
    engine_release(c->work);
    engine_events_free(c->vectors);
    free(c);
}

/* ---- the request -------------------------------------------------------------------------------
 */

static bool is_tokens(const bz_json_node *node)
{
    return bz_json_is(node, BZ_JSON_ARRAY) && bz_json_first(node) &&
           bz_json_is(bz_json_first(node), BZ_JSON_NUMBER);
}

static bz_status add_text(engine_request *r, const bz_json_node *node, bz_error *err)
{
    engine_prompt *p = &r->prompts[r->n_prompts];
    p->text = api_copy_bytes(node->of.text);
    p->len = node->of.text.len;
    r->n_prompts += p->text != NULL;
    return p->text ? BZ_OK : bz_fail(err, BZ_OUT_OF_MEMORY, "Not enough memory for the texts.");
}

static bz_status add_tokens(engine_request *r, const bz_json_node *list, bz_error *err)
{
    engine_prompt *p = &r->prompts[r->n_prompts];
    p->ids = malloc((list->n + (size_t)1) * sizeof *p->ids);
    if (!p->ids) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "Not enough memory for the tokens.");
    }
    r->n_prompts++;
    for (const bz_json_node *t = bz_json_first(list); t; t = t->next) {
        int64_t id;
        if (!bz_json_to_int(t, &id) || id < 0 || id > INT32_MAX) {
            return bz_fail(err, BZ_BAD_REQUEST, "input has a list that is not one of tokens.");
        }
        p->ids[p->len++] = (int32_t)id;
    }
    return BZ_OK;
}

/* A text, or a list of texts; with `tokens` also a list of tokens, or of such lists. */
static bz_status read_input(const bz_json_node *input, bool tokens, engine_request *r,
                            bz_error *err)
{
    const bool list = bz_json_is(input, BZ_JSON_ARRAY), one = !list || is_tokens(input);
    const bz_json_node *node = one ? input : bz_json_first(input);
    r->prompts = calloc((one || !input ? 1 : input->n) + (size_t)1, sizeof *r->prompts);
    if (!r->prompts) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "Not enough memory for the texts.");
    }
    for (; node; node = one ? NULL : node->next) {
        bz_status status;
        if (bz_json_is(node, BZ_JSON_STRING)) {
            status = add_text(r, node, err);
        } else if (tokens && is_tokens(node)) {
            status = add_tokens(r, node, err);
        } else {
            return bz_fail(err, BZ_BAD_REQUEST, "%s",
                           tokens ? "input is a text, a list of texts, or lists of tokens."
                                  : "input is a text or a list of texts.");
        }
        if (status != BZ_OK) {
            return status;
        }
    }
    return BZ_OK;
}

static bz_status read_dimensions(const bz_json_node *root, engine_request *r, bz_error *err)
{
    const bz_json_node *node = bz_json_get(root, "dimensions");
    int64_t n = 0;
    if (!api_is_absent(node) && (!bz_json_to_int(node, &n) || n < 0 || n > 1 << 20)) {
        return bz_fail(err, BZ_BAD_REQUEST, "dimensions is how many numbers a vector should have.");
    }
    r->dimensions = (uint32_t)n;
    return BZ_OK;
}

static bz_status read_openai(const bz_json_node *root, engine_request *r, embed_call *c,
                             bz_error *err)
{
    const bz_json_node *format = bz_json_get(root, "encoding_format"),
                       *n = bz_json_get(root, "dimensions");
    int64_t size = 1;
    if (!api_is_absent(format)) {
        const bool text = bz_json_is(format, BZ_JSON_STRING);
        c->base64 = text && bz_str_is(format->of.text, "base64");
        if (!c->base64 && !(text && bz_str_is(format->of.text, "float"))) {
            return bz_fail(err, BZ_BAD_REQUEST, "encoding_format is \"float\" or \"base64\".");
        }
    }
    if (!api_is_absent(n) && (!bz_json_to_int(n, &size) || size < 1)) {
        return bz_fail(err, BZ_BAD_REQUEST, "dimensions is at least 1.");
    }
    r->model = api_copy_text(bz_json_get(root, "model"));
    bz_status status = read_input(bz_json_get(root, "input"), true, r, err);
    if (status == BZ_OK && r->n_prompts == 0) {
        status = bz_fail(err, BZ_BAD_REQUEST, "input has no text.");
    }
    return status == BZ_OK ? read_dimensions(root, r, err) : status;
}

static bz_status read_ollama(const bz_json_node *root, engine_request *r, const embed_call *c,
                             bz_error *err)
{
    const bz_json_node *input = bz_json_get(root, c->form == FORM_OLLAMA_ONE ? "prompt" : "input");
    bz_status status = ollama_read_common(root, r, err);
    if (status == BZ_OK && !api_is_absent(input)) {
        status = read_input(input, false, r, err);
    }
    if (status == BZ_OK && !api_read_bool(root, "truncate", true, &r->truncate, err)) {
        status = err->code;
    }
    r->any_dimensions = true;
    return status == BZ_OK ? read_dimensions(root, r, err) : status;
}

static void handle(api *a, exchange *x, embed_form form)
{
    const api_style style = style_of(form);
    bz_arena arena = {0};
    const bz_json_node *root;
    engine_request r = {.task = ENGINE_EMBED, .client = exchange_client(x)};
    bz_error err = {0};
    if (!api_read_body(x, style, &arena, &root)) {
        return;
    }
    embed_call *c = calloc(1, sizeof *c);
    if (!c) {
        bz_fail(&err, BZ_OUT_OF_MEMORY, "Not enough memory for the request.");
    } else {
        c->form = form;
        if (form == FORM_OPENAI) {
            read_openai(root, &r, c, &err);
        } else {
            read_ollama(root, &r, c, &err);
        }
        c->n = r.n_prompts;
        r.task = c->n ? ENGINE_EMBED : ENGINE_LOAD; /* as Ollama's clients load a model */
    }
    bz_arena_free(&arena);
    if (!err.code) {
        c->work = engine_submit(a->engine, &r, &err);
    }
    if (err.code) {
        engine_request_free(&r);
        free(c);
        api_error(x, style, &err);
        return;
    }
    exchange_later(x, (exchange_task){.resume = resume, .ended = ended, .user = c});
}

void openai_embeddings(void *user, exchange *x)
{
    handle(user, x, FORM_OPENAI);
}

void ollama_embed(void *user, exchange *x)
{
    handle(user, x, FORM_OLLAMA);
}

void ollama_embeddings(void *user, exchange *x)
{
    handle(user, x, FORM_OLLAMA_ONE);
}
