/* Helpers as llama.cpp's server has them: health, tokens, templates, slots. */
#include <stdlib.h>
#include <string.h>

#include "server/api/helpers.h"

static void health(void *user, exchange *x)
{
    static const char ok[] = "{\"status\":\"ok\"}";
    (void)user;
    exchange_bytes(x, 200, "application/json", ok, sizeof ok - 1);
}

static void no_infill(void *user, exchange *x)
{
    (void)user;
    api_refuse(x, API_OPENAI, 501, "Gemma cannot insert text in the middle; use /v1/completions.");
}

const server_route api_helper_routes[] = {
    {"/health", HTTP_GET, 0, health, NULL, true},
    {"/metrics", HTTP_GET, 0, helper_metrics, NULL, false},
    {"/props", HTTP_GET, 0, helper_props, NULL, false},
    {"/slots", HTTP_GET, 0, helper_slots, NULL, false},
    {"/tokenize", HTTP_POST, API_BODY_MAX, helper_tokenize, NULL, false},
    {"/detokenize", HTTP_POST, API_BODY_MAX, helper_detokenize, NULL, false},
    {"/apply-template", HTTP_POST, API_BODY_MAX, helper_apply_template, NULL, false},
    {"/infill", HTTP_POST, API_BODY_MAX, no_infill, NULL, false},
    {NULL, 0, 0, NULL, NULL, false}};

/* ---- functions with the body as their argument --------------------------------------------------
 */

typedef struct body {
    bz_arena arena;
    const bz_json_node *root;
    char *text; /* the body */
    size_t n;
} body;

static void free_body(void *user)
{
    body *b = user;
    bz_arena_free(&b->arena);
    free(b->text);
    free(b);
}

/* Reads the body and calls `run` with it, on the engine's thread, with the model that it names. */
static void run_with_body(api *a, exchange *x, engine_function run)
{
    const bz_str bytes = exchange_body(x);
    body *b = calloc(1, sizeof *b);
    if (!b || !(b->text = api_copy_bytes(bytes))) {
        free(b);
        api_refuse(x, API_OPENAI, 503, "Not enough memory for the request.");
        return;
    }
    b->n = bytes.len;
    if (!api_read_body(x, API_OPENAI, &b->arena, &b->root)) {
        free_body(b);
        return;
    }
    engine_request r = {.task = ENGINE_RUN,
                        .model = api_copy_text(bz_json_get(b->root, "model")),
                        .run = run,
                        .user = b,
                        .free_user = free_body};
    api_run(a, x, API_OPENAI, &r);
}

/* ---- tokens -------------------------------------------------------------------------------------
 */

static void put_tokens(bz_json *j, const bz_model *model, const int32_t *ids, size_t n, bool pieces)
{
    bz_json_key(j, "tokens");
    bz_json_array(j);
    for (size_t i = 0; i < n; i++) {
        char text[BZ_TEXT_MAX];
        if (pieces) {
            bz_json_object(j);
            bz_json_put_int(j, "id", ids[i]);
            bz_json_put_str(j, "piece", (bz_str){text, models_token_text(model, ids[i], text)});
            bz_json_end(j);
        } else {
            bz_json_int(j, ids[i]);
        }
    }
    bz_json_end(j);
}

static bz_status run_tokenize(void *user, engine *e, engine_model *m, bz_json *j, bz_error *err)
{
    const bz_json_node *root = ((body *)user)->root, *content = bz_json_get(root, "content");
    bool bos, specials, pieces;
    (void)e;
    if (!bz_json_is(content, BZ_JSON_STRING)) {
        return bz_fail(err, BZ_BAD_REQUEST, "content is a text.");
    }
    if (!api_read_bool(root, "add_special", false, &bos, err) ||
        !api_read_bool(root, "parse_special", true, &specials, err) ||
        !api_read_bool(root, "with_pieces", false, &pieces, err)) {
        return err->code;
    }
    const bz_str text = content->of.text;
    const int64_t n = bz_tokenize(m->model, text.data, text.len, specials, bos, NULL, 0, err);
    int32_t *ids = n < 0 ? NULL : malloc(((size_t)n + 1) * sizeof *ids);
    if (!ids) {
        return n < 0 ? err->code : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the tokens.");
    }
    bz_tokenize(m->model, text.data, text.len, specials, bos, ids, (size_t)n, err);
    bz_json_object(j);
    put_tokens(j, m->model, ids, (size_t)n, pieces);
    bz_json_end(j);
    free(ids);
    return BZ_OK;
}

void helper_tokenize(void *user, exchange *x)
{
    run_with_body(user, x, run_tokenize);
}

static bz_status run_detokenize(void *user, engine *e, engine_model *m, bz_json *j, bz_error *err)
{
    const bz_json_node *tokens = bz_json_get(((body *)user)->root, "tokens");
    bz_json_buffer text = {0};
    bz_text_stream stream = {0};
    char piece[BZ_TEXT_MAX];
    bool ok = true;
    (void)e;
    if (!bz_json_is(tokens, BZ_JSON_ARRAY)) {
        return bz_fail(err, BZ_BAD_REQUEST, "tokens is a list of tokens.");
    }
    for (const bz_json_node *t = bz_json_first(tokens); t && ok; t = t->next) {
        int64_t id;
        if (!bz_json_to_int(t, &id) || id < 0 || id >= bz_model_vocab(m->model)) {
            free(text.text);
            return bz_fail(err, BZ_BAD_REQUEST, "tokens is a list of this model's tokens.");
        }
        ok = bz_json_to_buffer(&text, piece,
                               bz_text_push(&stream, m->model, (int32_t)id, true, piece));
    }
    ok = ok && bz_json_to_buffer(&text, piece, bz_text_push(&stream, m->model, -1, true, piece));
    bz_json_object(j);
    bz_json_put_str(j, "content", (bz_str){text.text ? text.text : "", text.n});
    bz_json_end(j);
    free(text.text);
    return ok ? BZ_OK : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the text.");
}

void helper_detokenize(void *user, exchange *x)
{
    run_with_body(user, x, run_detokenize);
}

/* The text of the prompt that a chat request makes. */
static bz_status run_template(void *user, engine *e, engine_model *m, bz_json *j, bz_error *err)
{
    const body *b = user;
    bz_turn *turn;
    bz_json_buffer text = {0};
    size_t n;
    uint32_t snapshot;
    bool ok = true;
    (void)e;
    const bz_status status = bz_turn_new(&turn, m->model, b->text, b->n, err);
    if (status != BZ_OK) {
        return status;
    }
    const int32_t *ids = bz_turn_prompt(turn, &n, &snapshot);
    for (size_t i = 0; i < n && ok; i++) {
        char piece[BZ_TEXT_MAX];
        ok = bz_json_to_buffer(&text, piece, models_token_text(m->model, ids[i], piece));
    }
    bz_json_object(j);
    bz_json_put_str(j, "prompt", (bz_str){text.text ? text.text : "", text.n});
    bz_json_end(j);
    free(text.text);
    bz_turn_free(turn);
    return ok ? BZ_OK : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the text.");
}

void helper_apply_template(void *user, exchange *x)
{
    run_with_body(user, x, run_template);
}
