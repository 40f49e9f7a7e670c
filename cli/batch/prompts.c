#include "cli/batch/prompts.h"

#include <string.h>

#include "base/error.h"

void prompt_line_free(prompt_line *p)
{
    bz_arena_free(&p->arena);
    settings_free(&p->own);
    *p = (prompt_line){0};
}

static bool is_null(const bz_json_node *node)
{
    return !node || node->kind == BZ_JSON_NULL;
}

#define COUNT(list) (sizeof(list) / sizeof *(list))

static bool is_one_of(bz_str key, const char *const *keys, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bz_str_is(key, keys[i])) {
            return true;
        }
    }
    return false;
}

/* ---- options ------------------------------------------------------------------------ */

static bz_status add_stops(settings *s, const bz_json_node *stop, bz_error *err)
{
    const bool list = stop->kind == BZ_JSON_ARRAY;
    bz_status status = BZ_OK;
    settings_clear_stops(s);
    s->stop_set = true;
    for (const bz_json_node *item = list ? stop->of.first : stop; item && status == BZ_OK;
         item = item->next) {
        status =
            item->kind == BZ_JSON_STRING
                ? settings_add_stop(s, item->of.text.data, item->of.text.len, err)
                : bz_fail(err, BZ_BAD_REQUEST, "\"stop\" must be a string or a list of strings.");
        if (!list) {
            break;
        }
    }
    return status;
}

static bz_status put_number(settings *s, setting id, const bz_json_node *value, bz_error *err)
{
    char text[64];
    if (value->kind != BZ_JSON_NUMBER || value->of.text.len >= sizeof text) {
        return bz_fail(err, BZ_BAD_REQUEST, "\"%s\" must be a number.", settings_name(id));
    }
    memcpy(text, value->of.text.data, value->of.text.len);
    text[value->of.text.len] = 0;
    return settings_put_text(s, id, text, err);
}

/* Options about the machine, which never change an answer: ignored. */
static bool changes_nothing(bz_str name)
{
    static const char *const names[] = {"num_ctx",  "num_keep",   "num_batch", "num_gpu",
                                        "main_gpu", "num_thread", "use_mmap",  "use_mlock",
                                        "numa",     "low_vram",   "vocab_only"};
    return is_one_of(name, names, COUNT(names));
}

static bz_status read_options(prompt_line *p, bz_error *err)
{
    const bz_json_node *options = bz_json_get(p->root, "options");
    bz_status status = BZ_OK;
    if (is_null(options)) {
        return BZ_OK;
    }
    if (options->kind != BZ_JSON_OBJECT) {
        return bz_fail(err, BZ_BAD_REQUEST, "\"options\" must be an object.");
    }
    for (const bz_json_node *o = options->of.first; o && status == BZ_OK; o = o->next) {
        const int id = settings_find(o->key.data, o->key.len);
        if (is_null(o) || changes_nothing(o->key)) {
            continue;
        }
        if (bz_str_is(o->key, "stop")) {
            status = add_stops(&p->own, o, err);
        } else if (id < SETTINGS) {
            status = put_number(&p->own, (setting)id, o, err);
        } else {
            char shown[200];
            status =
                bz_fail(err, BZ_BAD_REQUEST, "Unknown option \"%s\".", bz_str_show(o->key, shown));
        }
    }
    return status;
}

/* OpenAI's names, beside the messages. They override "options". */
static bz_status read_beside(prompt_line *p, bz_error *err)
{
    static const struct {
        const char *key;
        setting id;
    } names[] = {
        {"temperature", SET_TEMPERATURE},
        {"top_p", SET_TOP_P},
        {"top_k", SET_TOP_K},
        {"min_p", SET_MIN_P},
        {"repetition_penalty", SET_REPEAT_PENALTY},
        {"presence_penalty", SET_PRESENCE_PENALTY},
        {"frequency_penalty", SET_FREQUENCY_PENALTY},
        {"seed", SET_SEED},
        {"max_tokens", SET_NUM_PREDICT},
        {"max_completion_tokens", SET_NUM_PREDICT},
    };
    const bz_json_node *stop = bz_json_get(p->root, "stop"),
                       *probs = bz_json_get(p->root, "logprobs");
    if (!is_null(probs) && probs->kind != BZ_JSON_FALSE) {
        return bz_fail(err, BZ_BAD_REQUEST, "logprobs is false: answers do not have them.");
    }
    bz_status status = is_null(stop) ? BZ_OK : add_stops(&p->own, stop, err);
    for (size_t i = 0; i < sizeof names / sizeof *names && status == BZ_OK; i++) {
        const bz_json_node *value = bz_json_get(p->root, names[i].key);
        if (!is_null(value)) {
            status = put_number(&p->own, names[i].id, value, err);
        }
    }
    return status;
}

/* ---- the line ------------------------------------------------------------------------- */

static bz_status read_question(const prompt_line *p, bz_error *err)
{
    const bz_json_node *prompt = bz_json_get(p->root, "prompt"),
                       *messages = bz_json_get(p->root, "messages");
    const bz_json_node *system = bz_json_get(p->root, "system"),
                       *images = bz_json_get(p->root, "images");
    if (is_null(prompt) == is_null(messages)) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       is_null(prompt)
                           ? "The line has neither \"prompt\" nor \"messages\"."
                           : "The line has both \"prompt\" and \"messages\"; give one of them.");
    }
    if (!is_null(prompt) && prompt->kind != BZ_JSON_STRING) {
        return bz_fail(err, BZ_BAD_REQUEST, "\"prompt\" must be a string.");
    }
    if (!is_null(messages) && messages->kind != BZ_JSON_ARRAY) {
        return bz_fail(err, BZ_BAD_REQUEST, "\"messages\" must be a list.");
    }
    if (is_null(prompt) && !is_null(images)) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "\"images\" must be a list beside \"prompt\" or in a message.");
    }
    if (!is_null(system) && system->kind != BZ_JSON_STRING) {
        return bz_fail(err, BZ_BAD_REQUEST, "\"system\" must be a string.");
    }
    return BZ_OK;
}

bz_status prompt_line_read(prompt_line *p, const char *text, size_t len, bz_error *err)
{
    const bz_json_node *root;
    bz_status status = bz_json_read(&root, text, len, &p->arena, err);
    if (status != BZ_OK) {
        return status == BZ_BAD_FILE ? (bz_status)(err->code = BZ_BAD_REQUEST) : status;
    }
    if (root->kind != BZ_JSON_OBJECT) {
        return bz_fail(err, BZ_BAD_REQUEST, "The line is not a JSON object.");
    }
    p->root = root;
    const bz_json_node *id = bz_json_get(root, "id");
    if (!is_null(id) && id->kind != BZ_JSON_STRING && id->kind != BZ_JSON_NUMBER) {
        return bz_fail(err, BZ_BAD_REQUEST, "\"id\" must be a string or a number.");
    }
    p->id = is_null(id) ? NULL : id;
    status = read_question(p, err);
    if (status == BZ_OK) {
        status = read_options(p, err);
    }
    return status == BZ_OK ? read_beside(p, err) : status;
}

/* ---- the request ------------------------------------------------------------------------- */

/* images: a list as in Ollama's API, or NULL */
static void put_message(bz_json *j, const char *role, bz_str content, const bz_json_node *images)
{
    bz_json_object(j);
    bz_json_put_text(j, "role", role);
    bz_json_put_str(j, "content", content);
    if (images) {
        bz_json_key(j, "images");
        bz_json_node_write(j, images);
    }
    bz_json_end(j);
}

static bool begins_with_system(const bz_json_node *messages)
{
    const bz_str role = bz_json_string(bz_json_get(bz_json_first(messages), "role"));
    return bz_str_is(role, "system") || bz_str_is(role, "developer");
}

/* Messages with which the model's conversations begin. */
static bool put_first(bz_json *j, char *const *first, size_t n, bz_arena *arena)
{
    bool ok = true;
    for (size_t i = 0; i < n && ok; i++) {
        const bz_json_node *node;
        ok = bz_json_read(&node, first[i], strlen(first[i]), arena, NULL) == BZ_OK;
        if (ok) {
            bz_json_node_write(j, node);
        }
    }
    return ok;
}

static bool put_messages(bz_json *j, prompt_line *p, const char *system, char *const *first,
                         size_t n_first)
{
    const bz_json_node *root = p->root;
    const bz_json_node *messages = bz_json_get(root, "messages"),
                       *own = bz_json_get(root, "system");
    bz_json_key(j, "messages");
    bz_json_array(j);
    if (!is_null(own)) {
        put_message(j, "system", own->of.text, NULL);
    } else if (system && !begins_with_system(messages)) {
        put_message(j, "system", (bz_str){system, strlen(system)}, NULL);
    }
    const bz_json_node *m = bz_json_first(messages);
    if (begins_with_system(messages)) {
        bz_json_node_write(j, m);
        m = m->next;
    }
    const bool ok = put_first(j, first, n_first, &p->arena);
    for (; m; m = m->next) {
        bz_json_node_write(j, m);
    }
    if (is_null(messages)) {
        put_message(j, "user", bz_json_string(bz_json_get(root, "prompt")),
                    bz_json_get(root, "images"));
    }
    bz_json_end(j);
    return ok;
}

/* Keys that put_messages and `stop` below write, or that are no part of a request. The numbers of
 * `options` are in the settings already. */
static bool is_read_here(bz_str key)
{
    static const char *const keys[] = {"id",     "prompt",  "messages", "system",
                                       "images", "options", "stop"};
    return is_one_of(key, keys, COUNT(keys));
}

bool prompt_line_request(prompt_line *p, const char *system, char *const *first, size_t n_first,
                         bool think, const settings *s, bz_json_buffer *out)
{
    static const char *const thinking[] = {"think", "enable_thinking", "reasoning_effort"};
    static const char *const forms[] = {"response_format", "format", "grammar", "regex", "choices"};
    bool chosen = false, formed = false; /* whether to think; what the answer may be */
    bz_json j;
    for (const bz_json_node *value = p->root->of.first; value; value = value->next) {
        formed = formed || (!is_null(value) && is_one_of(value->key, forms, COUNT(forms)));
    }
    bz_json_init(&j, bz_json_to_buffer, out);
    bz_json_object(&j);
    const bool ok = put_messages(&j, p, system, first, n_first);
    for (const bz_json_node *value = p->root->of.first; value; value = value->next) {
        if (!is_null(value) && !is_read_here(value->key)) {
            chosen = chosen || is_one_of(value->key, thinking, COUNT(thinking));
            bz_json_key_str(&j, value->key);
            bz_json_node_write(&j, value);
        }
    }
    if (!chosen) {
        bz_json_put_bool(&j, "think", think);
    }
    bz_json_key(&j, "stop");
    bz_json_array(&j);
    for (size_t i = 0; i < s->n_stop; i++) {
        bz_json_text(&j, s->stop[i]);
    }
    bz_json_end(&j);
    bz_json_end(&j);
    if (!bz_json_finish(&j) || !ok) {
        return false;
    }
    if (s->form && !formed) { /* one more member, in the place of the last brace */
        out->n--;
        return bz_json_to_buffer(out, ",", 1) && bz_json_to_buffer(out, s->form, strlen(s->form)) &&
               bz_json_to_buffer(out, "}", 1);
    }
    return true;
}
