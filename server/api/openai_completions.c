/* POST /v1/completions: text that continues a prompt. */
#include <stdlib.h>
#include <string.h>

#include "server/api/openai.h"

enum { DEFAULT_MAX_TOKENS = 16, MAX_PROMPTS = 64 };

/* ---- answers -----------------------------------------------------------------------------------
 */

/* The older form of log-probabilities: a list for each property. */
static void put_log_probs(bz_json *j, answer_choice *c)
{
    const bz_str objects = answer_take_log_probs(c);
    bz_json_buffer text = {0};
    bz_arena arena = {0};
    const bz_json_node *list = NULL;
    bz_json_key(j, "logprobs");
    if (!objects.len || !bz_json_to_buffer(&text, "[", 1) ||
        !bz_json_to_buffer(&text, objects.data, objects.len) || !bz_json_to_buffer(&text, "]", 1) ||
        bz_json_read(&list, text.text, text.n, &arena, NULL) != BZ_OK) {
        bz_json_null(j);
    } else {
        bz_json_object(j);
        static const char *const keys[][2] = {{"tokens", "token"}, {"token_logprobs", "logprob"}};
        for (int k = 0; k < 2; k++) {
            bz_json_key(j, keys[k][0]);
            bz_json_array(j);
            for (const bz_json_node *t = bz_json_first(list); t; t = t->next) {
                bz_json_node_write(j, bz_json_get(t, keys[k][1]));
            }
            bz_json_end(j);
        }
        bz_json_key(j, "top_logprobs");
        bz_json_array(j);
        for (const bz_json_node *t = bz_json_first(list); t; t = t->next) {
            bz_json_object(j);
            for (const bz_json_node *top = bz_json_first(bz_json_get(t, "top_logprobs")); top;
                 top = top->next) {
                bz_json_key_str(j, bz_json_string(bz_json_get(top, "token")));
                bz_json_node_write(j, bz_json_get(top, "logprob"));
            }
            bz_json_end(j);
        }
        bz_json_end(j);
        bz_json_end(j);
    }
    free(text.text);
    bz_arena_free(&arena);
}

static void put_choice(answer *a, bz_json *j, uint32_t index, bz_str text, const char *finish)
{
    bz_json_object(j);
    bz_json_put_str(j, "text", text);
    bz_json_put_uint(j, "index", index);
    put_log_probs(j, &a->choices[index]);
    bz_json_put_text(j, "finish_reason", finish);
    bz_json_end(j);
}

static void begin(answer *a)
{
    (void)a;
}

static void event(answer *a, const engine_event *e)
{
    const openai_settings *s = a->settings;
    bz_json j;
    if (e->kind != ENGINE_ANSWER && e->kind != ENGINE_END) {
        return;
    }
    openai_begin_event(a, &j);
    openai_begin_object(&j, a, "text_completion");
    bz_json_key(&j, "choices");
    bz_json_array(&j);
    put_choice(a, &j, e->choice, (bz_str){e->text, e->len},
               e->kind == ENGINE_END ? openai_finish(&a->choices[e->choice]) : NULL);
    bz_json_end(&j);
    if (s->include_usage) {
        bz_json_key(&j, "usage");
        bz_json_null(&j);
    }
    bz_json_end(&j);
    openai_end_event(a, &j);
}

static void end(answer *a)
{
    openai_end_stream(a, "text_completion");
}

static void whole(answer *a)
{
    bz_json j;
    answer_json(a, &j);
    openai_begin_object(&j, a, "text_completion");
    bz_json_key(&j, "choices");
    bz_json_array(&j);
    for (uint32_t i = 0; i < a->n_choices; i++) {
        const bz_json_buffer *text = &a->choices[i].text;
        put_choice(a, &j, i, (bz_str){text->text ? text->text : "", text->n},
                   openai_finish(&a->choices[i]));
    }
    bz_json_end(&j);
    openai_put_usage(&j, a);
    bz_json_end(&j);
    a->failed |= !bz_json_finish(&j);
}

static const answer_form form = {.style = API_OPENAI,
                                 .stream_type = "text/event-stream",
                                 .begin = begin,
                                 .event = event,
                                 .end = end,
                                 .whole = whole};

/* ---- requests ----------------------------------------------------------------------------------
 */

static const char PROMPT_FORM[] = "prompt is a text, a list of tokens, or a list of either.";

static bz_status take_prompt(const bz_json_node *node, engine_prompt *p, bz_error *err)
{
    if (bz_json_is(node, BZ_JSON_STRING)) {
        *p = (engine_prompt){.text = api_copy_bytes(node->of.text), .len = node->of.text.len};
        return p->text ? BZ_OK : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the prompt.");
    }
    if (!bz_json_is(node, BZ_JSON_ARRAY) || !node->n) {
        return bz_fail(err, BZ_BAD_REQUEST, PROMPT_FORM);
    }
    p->ids = calloc(node->n, sizeof *p->ids);
    for (const bz_json_node *item = node->of.first; p->ids && item; item = item->next) {
        int64_t id;
        if (!bz_json_to_int(item, &id) || id < 0 || id > INT32_MAX) {
            return bz_fail(err, BZ_BAD_REQUEST, PROMPT_FORM);
        }
        p->ids[p->len++] = (int32_t)id;
    }
    return p->ids ? BZ_OK : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the prompt.");
}

static bz_status take_prompts(const bz_json_node *node, engine_request *r, bz_error *err)
{
    const bz_json_node *first = bz_json_first(node);
    const bool several = bz_json_is(node, BZ_JSON_ARRAY) && first && first->kind != BZ_JSON_NUMBER;
    const size_t n = several ? node->n : 1;
    const bz_json_node *item = several ? first : node;
    bz_status status = BZ_OK;
    if (api_is_absent(node)) {
        return bz_fail(err, BZ_BAD_REQUEST, PROMPT_FORM);
    }
    if (n > MAX_PROMPTS) {
        return bz_fail(err, BZ_BAD_REQUEST, "A request has at most %d prompts.", MAX_PROMPTS);
    }
    r->prompts = calloc(n, sizeof *r->prompts);
    if (!r->prompts) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the prompt.");
    }
    for (size_t i = 0; i < n && status == BZ_OK; i++, item = item->next) {
        r->n_prompts = i + 1;
        status = take_prompt(item, &r->prompts[i], err);
    }
    return status;
}

static bz_status check(const bz_json_node *root, uint32_t n, bz_error *err)
{
    const bz_json_node *echo = bz_json_get(root, "echo"), *best = bz_json_get(root, "best_of");
    int64_t of;
    if (bz_json_is(echo, BZ_JSON_TRUE)) {
        return bz_fail(err, BZ_BAD_REQUEST, "echo is not supported: the prompt is not repeated.");
    }
    if (bz_json_string(bz_json_get(root, "suffix")).len) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "suffix is not supported: text cannot be inserted in the middle.");
    }
    if (!api_is_absent(best) && (!bz_json_to_int(best, &of) || of != (int64_t)n)) {
        return bz_fail(err, BZ_BAD_REQUEST, "best_of is the same as n: all answers are returned.");
    }
    return BZ_OK;
}

/* logprobs is a number here, and true with top_logprobs in a chat. */
static bz_status write_json(const bz_json_node *root, engine_request *r, bz_error *err)
{
    static const char *const skip[] = {"prompt",  "n",        "stream",   "stream_options",
                                       "echo",    "suffix",   "model",    "store",
                                       "best_of", "logprobs", "messages", NULL};
    const bz_json_node *log_probs = bz_json_get(root, "logprobs");
    int64_t top = 0;
    if (!api_is_absent(log_probs) && (!bz_json_to_int(log_probs, &top) || top < 0 || top > 20)) {
        return bz_fail(err, BZ_BAD_REQUEST, "logprobs is a whole number from 0 to 20.");
    }
    api_json b;
    api_json_begin(&b);
    api_copy_members(&b.j, root, skip);
    bz_json_key(&b.j, "messages");
    bz_json_array(&b.j);
    bz_json_end(&b.j);
    if (api_is_absent(bz_json_get(root, "max_tokens"))) {
        bz_json_put_int(&b.j, "max_tokens", DEFAULT_MAX_TOKENS);
    }
    if (!api_is_absent(log_probs)) {
        bz_json_put_bool(&b.j, "logprobs", true);
        bz_json_put_int(&b.j, "top_logprobs", top);
    }
    return api_json_end(&b, r)
               ? BZ_OK
               : bz_fail(err, BZ_OUT_OF_MEMORY, "Not enough memory for the request.");
}

void openai_completions(void *user, exchange *x)
{
    bz_arena arena = {0};
    const bz_json_node *root;
    bz_error err = {0};
    bool stream = false;
    if (!api_read_body(x, API_OPENAI, &arena, &root)) {
        return;
    }
    engine_request r = {.task = ENGINE_PROMPT, .model = api_copy_text(bz_json_get(root, "model"))};
    openai_settings *settings = calloc(1, sizeof *settings);
    if (!settings) {
        bz_fail(&err, BZ_OUT_OF_MEMORY, "Not enough memory for the request.");
    } else if (openai_read_common(root, &stream, &r.choices, settings, &err) == BZ_OK &&
               check(root, r.choices, &err) == BZ_OK &&
               take_prompts(bz_json_get(root, "prompt"), &r, &err) == BZ_OK) {
        write_json(root, &r, &err);
    }
    bz_arena_free(&arena);
    if (err.code) {
        engine_request_free(&r);
        free(settings);
        api_error(x, API_OPENAI, &err);
        return;
    }
    const uint32_t n = r.choices * (uint32_t)r.n_prompts;
    answer_start(user, x, &form, &r, n, stream, "cmpl-", settings);
}
