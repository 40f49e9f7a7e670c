/* Default settings of models in Ollama's store. */
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "server/engine/internal.h"

static void put_number(bz_json *j, const char *key, bz_store_number n, bool whole)
{
    if (n.set && whole) {
        bz_json_put_int(j, key, (int64_t)n.value);
    } else if (n.set) {
        bz_json_key(j, key);
        bz_json_double(j, n.value);
    }
}

static void put_sampling(bz_json *j, const bz_store_params *p)
{
    put_number(j, "temperature", p->temperature, false);
    put_number(j, "top_p", p->top_p, false);
    put_number(j, "min_p", p->min_p, false);
    put_number(j, "top_k", p->top_k, true);
    put_number(j, "repeat_penalty", p->repeat_penalty, false);
    put_number(j, "repeat_last_n", p->repeat_last_n, true);
    put_number(j, "presence_penalty", p->presence_penalty, false);
    put_number(j, "frequency_penalty", p->frequency_penalty, false);
}

static void put_defaults(bz_json *j, const bz_store_params *p, bool samples, bool stop)
{
    if (samples) {
        put_sampling(j, p);
    }
    put_number(j, "num_predict", p->num_predict, true);
    put_number(j, "seed", p->seed, true);
    if (stop && p->n_stop) {
        bz_json_key(j, "stop");
        bz_json_array(j);
        for (size_t i = 0; i < p->n_stop; i++) {
            bz_json_text(j, p->stop[i]);
        }
        bz_json_end(j);
    }
}

/* Of two members with the same key the later one counts: the client's. */
static void put_options(bz_json *j, const bz_store_params *p, bool samples, const bz_json_node *own,
                        bool stop)
{
    bz_json_key(j, "options");
    bz_json_object(j);
    put_defaults(j, p, samples, stop);
    for (const bz_json_node *item = bz_json_first(own); item; item = item->next) {
        bz_json_key_str(j, item->key);
        bz_json_node_write(j, item);
    }
    bz_json_end(j);
}

static bool is_system(const bz_json_node *message)
{
    const bz_str role = bz_json_string(bz_json_get(message, "role"));
    return bz_str_is(role, "system") || bz_str_is(role, "developer");
}

static bool has_system(const bz_json_node *messages)
{
    const bz_json_node *m = bz_json_first(messages);
    while (m && !is_system(m)) {
        m = m->next;
    }
    return m != NULL;
}

/* `json` is a message as the store has it, which stays when the conversation is shortened. */
static bz_status put_own(bz_json *j, const char *json, bz_arena *arena, bz_error *err)
{
    const bz_json_node *node;
    const bz_status status = bz_json_read(&node, json, strlen(json), arena, err);
    if (status == BZ_OK) {
        bz_json_object(j);
        bz_json_put_bool(j, "pinned", true);
        for (const bz_json_node *item = bz_json_first(node); item; item = item->next) {
            bz_json_key_str(j, item->key);
            bz_json_node_write(j, item);
        }
        bz_json_end(j);
    }
    return status;
}

/* The system prompt, `own` messages of the model, the request's messages. */
static bz_status put_messages(bz_json *j, const bz_json_node *messages, const char *system,
                              const bz_store_messages *own, bz_arena *arena, bz_error *err)
{
    bz_status status = BZ_OK;
    const bz_json_node *m = bz_json_first(messages);
    bz_json_key(j, "messages");
    bz_json_array(j);
    if (system) {
        bz_json_object(j);
        bz_json_put_text(j, "role", "system");
        bz_json_put_text(j, "content", system);
        bz_json_end(j);
    } else if (m && is_system(m)) {
        bz_json_node_write(j, m);
        m = m->next;
    }
    for (size_t i = 0; own && i < own->n && status == BZ_OK; i++) {
        status = put_own(j, own->json[i], arena, err);
    }
    for (; m; m = m->next) {
        bz_json_node_write(j, m);
    }
    bz_json_end(j);
    return status;
}

bz_status defaults_apply(const bz_store_model *store, bool samples, bool continues,
                         const char *json, size_t n, char **out, size_t *n_out, bz_error *err)
{
    bz_arena arena = {0};
    const bz_json_node *root;
    *out = NULL;
    if (!store->name) {
        return BZ_OK;
    }
    bz_status status = bz_json_read(&root, json, n, &arena, err);
    if (status != BZ_OK || !bz_json_is(root, BZ_JSON_OBJECT)) {
        bz_arena_free(&arena);
        return status;
    }
    const bz_json_node *messages = bz_json_get(root, "messages"),
                       *options = bz_json_get(root, "options");
    const bool list = bz_json_is(messages, BZ_JSON_ARRAY);
    const bool system = store->system && store->system[0] && list && !has_system(messages);
    const bool own = store->messages.n && list && !continues;
    bz_json_buffer text = {0};
    bz_json j;
    bz_json_init(&j, bz_json_to_buffer, &text);
    bz_json_object(&j);
    for (const bz_json_node *item = bz_json_first(root); item; item = item->next) {
        if (item == options || ((system || own) && item == messages)) {
            continue;
        }
        bz_json_key_str(&j, item->key);
        bz_json_node_write(&j, item);
    }
    if (!options || options->kind == BZ_JSON_NULL || options->kind == BZ_JSON_OBJECT) {
        put_options(&j, &store->params, samples, options, !bz_json_get(root, "stop"));
    } else {
        bz_json_key(&j, "options");
        bz_json_node_write(&j, options); /* refused later */
    }
    if (system || own) {
        status = put_messages(&j, messages, system ? store->system : NULL,
                              own ? &store->messages : NULL, &arena, err);
    }
    bz_json_end(&j);
    bz_arena_free(&arena);
    if (status != BZ_OK) {
        free(text.text);
        return status;
    }
    if (!bz_json_finish(&j)) {
        free(text.text);
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the request.");
    }
    *out = text.text;
    *n_out = text.n;
    return BZ_OK;
}
