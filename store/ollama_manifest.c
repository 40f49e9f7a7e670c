#include "store/ollama_manifest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"

/* Parses one JSON object into the arena. */
static bz_status read_object(const bz_json_node **root, const char *json, size_t len,
                             bz_arena *arena, bz_error *err)
{
    bz_error why = {0};
    bz_status status = bz_json_read(root, json, len, arena, &why);
    if (status == BZ_OUT_OF_MEMORY) {
        return bz_fail(err, status, "%s", why.text);
    }
    if (status != BZ_OK) { /* a sentence that will follow a colon */
        size_t n = strlen(why.text);
        bool the = strncmp(why.text, "The ", 4) == 0;
        return bz_fail(err, BZ_BAD_FILE, "%s%.*s", the ? "t" : "",
                       (int)(n - the - (n && why.text[n - 1] == '.')), why.text + the);
    }
    if (!bz_json_is(*root, BZ_JSON_OBJECT)) {
        return bz_fail(err, BZ_BAD_FILE, "it is not a JSON object");
    }
    return BZ_OK;
}

/* ---- manifest ---------------------------------------------------------------- */

static bz_layer_kind kind_of(bz_str media_type)
{
    static const struct {
        const char *name;
        bz_layer_kind kind;
    } kinds[] = {
        {"application/vnd.ollama.image.model", BZ_LAYER_MODEL},
        {"application/vnd.ollama.image.projector", BZ_LAYER_PROJECTOR},
        {"application/vnd.ollama.image.draft", BZ_LAYER_DRAFT},
        {"application/vnd.ollama.image.adapter", BZ_LAYER_ADAPTER},
        {"application/vnd.ollama.image.params", BZ_LAYER_PARAMS},
        {"application/vnd.ollama.image.system", BZ_LAYER_SYSTEM},
        {"application/vnd.ollama.image.messages", BZ_LAYER_MESSAGES},
        {"application/vnd.ollama.image.tensor", BZ_LAYER_TENSOR},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (bz_str_is(media_type, kinds[i].name)) {
            return kinds[i].kind;
        }
    }
    return BZ_LAYER_OTHER;
}

static bool is_digest(bz_str s)
{
    if (s.len != BZ_DIGEST_TEXT - 1 || memcmp(s.data, "sha256:", 7) != 0) {
        return false;
    }
    for (size_t i = 7; i < s.len; i++) {
        char c = s.data[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))) {
            return false;
        }
    }
    return true;
}

/* number 0: the config. */
static bz_status read_layer(bz_store_manifest *m, bz_store_layer *layer, const bz_json_node *node,
                            size_t number, bz_error *err)
{
    const bz_str digest = bz_json_string(bz_json_get(node, "digest"));
    int64_t size;
    if (!is_digest(digest)) {
        return number
                   ? bz_fail(err, BZ_BAD_FILE,
                             "the digest of layer %zu is not \"sha256:\" and 64 hexadecimal digits",
                             number)
                   : bz_fail(
                         err, BZ_BAD_FILE,
                         "the digest of its config is not \"sha256:\" and 64 hexadecimal digits");
    }
    if (!bz_json_to_int(bz_json_get(node, "size"), &size) || size < 0) {
        return number ? bz_fail(err, BZ_BAD_FILE, "layer %zu has no size", number)
                      : bz_fail(err, BZ_BAD_FILE, "its config has no size");
    }
    layer->kind = kind_of(bz_json_string(bz_json_get(node, "mediaType")));
    memcpy(layer->digest, digest.data, digest.len);
    layer->digest[digest.len] = 0;
    layer->size = (uint64_t)size;
    m->size = m->size > UINT64_MAX - layer->size ? UINT64_MAX : m->size + layer->size;
    return BZ_OK;
}

static bz_status read_manifest(bz_store_manifest *m, const bz_json_node *root, bz_error *err)
{
    const bz_json_node *config = bz_json_get(root, "config"), *layers = bz_json_get(root, "layers");
    if (layers && !bz_json_is(layers, BZ_JSON_ARRAY) && !bz_json_is(layers, BZ_JSON_NULL)) {
        return bz_fail(err, BZ_BAD_FILE, "its layers are not a list");
    }
    /* A config without a digest is no config, as in Ollama. */
    if (bz_json_string(bz_json_get(config, "digest")).len) {
        bz_status status = read_layer(m, &m->config, config, 0, err);
        if (status != BZ_OK) {
            return status;
        }
    }
    if (!bz_json_first(layers)) {
        return BZ_OK;
    }
    m->layers = calloc(layers->n, sizeof *m->layers);
    if (!m->layers) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for %u layers.", (unsigned)layers->n);
    }
    for (const bz_json_node *node = bz_json_first(layers); node; node = node->next) {
        bz_status status = read_layer(m, &m->layers[m->n_layers], node, m->n_layers + 1, err);
        if (status != BZ_OK) {
            return status;
        }
        m->n_layers++;
    }
    return BZ_OK;
}

bz_status bz_store_manifest_parse(bz_store_manifest *m, const char *json, size_t len, bz_error *err)
{
    bz_arena arena = {0};
    const bz_json_node *root;
    *m = (bz_store_manifest){0};
    bz_status status = read_object(&root, json, len, &arena, err);
    if (status == BZ_OK) {
        status = read_manifest(m, root, err);
    }
    bz_arena_free(&arena);
    if (status != BZ_OK) {
        bz_store_manifest_free(m);
    }
    return status;
}

void bz_store_manifest_free(bz_store_manifest *m)
{
    free(m->layers);
    *m = (bz_store_manifest){0};
}

/* ---- config ------------------------------------------------------------------ */

static void copy_text(char *to, size_t room, bz_str from)
{
    size_t n = from.len < room - 1 ? from.len : room - 1;
    for (size_t i = 0; i < n; i++) {
        to[i] = from.data[i] >= 0x20 && from.data[i] < 0x7F ? from.data[i] : '?';
    }
    to[n] = 0;
}

bz_status bz_store_config_parse(bz_store_config *c, const char *json, size_t len, bz_error *err)
{
    bz_arena arena = {0};
    const bz_json_node *root;
    *c = (bz_store_config){0};
    bz_status status = read_object(&root, json, len, &arena, err);
    if (status == BZ_OK) {
        const struct {
            const char *key;
            char *to;
            size_t room;
        } fields[] = {
            {"model_format", c->format, sizeof c->format},
            {"model_family", c->family, sizeof c->family},
            {"model_type", c->parameters, sizeof c->parameters},
            {"file_type", c->quantization, sizeof c->quantization},
            {"renderer", c->renderer, sizeof c->renderer},
            {"parser", c->parser, sizeof c->parser},
            {"remote_host", c->remote_host, sizeof c->remote_host},
        };
        for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
            copy_text(fields[i].to, fields[i].room,
                      bz_json_string(bz_json_get(root, fields[i].key)));
        }
    }
    bz_arena_free(&arena);
    return status;
}

/* ---- params ------------------------------------------------------------------ */

static const struct {
    const char *name;
    size_t offset;
    bool whole;
} numbers[] = {
#define ROW(name, whole)                                                                           \
    {                                                                                              \
#name, offsetof(bz_store_params, name), whole                                              \
    }
    ROW(temperature, false),
    ROW(top_p, false),
    ROW(min_p, false),
    ROW(typical_p, false),
    ROW(repeat_penalty, false),
    ROW(presence_penalty, false),
    ROW(frequency_penalty, false),
    ROW(top_k, true),
    ROW(repeat_last_n, true),
    ROW(seed, true),
    ROW(num_ctx, true),
    ROW(num_predict, true),
    ROW(num_keep, true),
#undef ROW
};

/* A C string: a NUL inside would truncate it. */
static bz_status add_stop(bz_store_params *p, const bz_json_node *node, bz_error *err)
{
    const bz_str s = bz_json_string(node);
    if (!bz_json_is(node, BZ_JSON_STRING) || (s.len && memchr(s.data, 0, s.len))) {
        return bz_fail(err, BZ_BAD_FILE, "the option \"stop\" is not a list of strings");
    }
    if (s.len == 0) {
        return BZ_OK; /* an empty string would stop every answer at once */
    }
    char *text = malloc(s.len + 1);
    char **more = realloc(p->stop, (p->n_stop + 1) * sizeof *more);
    p->stop = more ? more : p->stop;
    if (!text || !more) {
        free(text);
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a stop string.");
    }
    memcpy(text, s.data, s.len);
    text[s.len] = 0;
    p->stop[p->n_stop++] = text;
    return BZ_OK;
}

static bz_status read_params(bz_store_params *p, const bz_json_node *root, bz_error *err)
{
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const bz_json_node *node = bz_json_get(root, numbers[i].name);
        bz_store_number *to = (bz_store_number *)(void *)((char *)p + numbers[i].offset);
        if (!node || bz_json_is(node, BZ_JSON_NULL)) {
            continue;
        }
        if (!bz_json_to_double(node, &to->value) ||
            (numbers[i].whole && to->value != floor(to->value))) {
            return bz_fail(err, BZ_BAD_FILE, "the option \"%s\" is not a %snumber", numbers[i].name,
                           numbers[i].whole ? "whole " : "");
        }
        to->set = true;
    }
    const bz_json_node *stop = bz_json_get(root, "stop");
    if (!stop || bz_json_is(stop, BZ_JSON_NULL)) {
        return BZ_OK;
    }
    if (!bz_json_is(stop, BZ_JSON_ARRAY)) {
        return add_stop(p, stop, err);
    }
    bz_status status = BZ_OK;
    for (const bz_json_node *node = bz_json_first(stop); node && status == BZ_OK;
         node = node->next) {
        status = add_stop(p, node, err);
    }
    return status;
}

bz_status bz_store_params_parse(bz_store_params *p, const char *json, size_t len, bz_error *err)
{
    bz_arena arena = {0};
    const bz_json_node *root;
    *p = (bz_store_params){0};
    bz_status status = read_object(&root, json, len, &arena, err);
    if (status == BZ_OK) {
        status = read_params(p, root, err);
    }
    bz_arena_free(&arena);
    if (status != BZ_OK) {
        bz_store_params_free(p);
    }
    return status;
}

void bz_store_params_free(bz_store_params *p)
{
    for (size_t i = 0; i < p->n_stop; i++) {
        free(p->stop[i]);
    }
    free(p->stop);
    *p = (bz_store_params){0};
}

/* ---- messages ---------------------------------------------------------------- */

static bz_status add_message(bz_store_messages *m, const bz_json_node *node, bz_error *err)
{
    const bz_json_node *content = bz_json_get(node, "content");
    const bz_str role = bz_json_string(bz_json_get(node, "role"));
    if (!bz_json_is(node, BZ_JSON_OBJECT) || !bz_json_is(content, BZ_JSON_STRING) ||
        !(bz_str_is(role, "system") || bz_str_is(role, "user") || bz_str_is(role, "assistant"))) {
        return bz_fail(err, BZ_BAD_FILE, "message %zu is not a text of system, user or assistant",
                       m->n + 1);
    }
    char **more = realloc(m->json, (m->n + 1) * sizeof *more);
    m->json = more ? more : m->json;
    bz_json_buffer text = {0};
    bz_json j;
    bz_json_init(&j, bz_json_to_buffer, &text);
    bz_json_object(&j);
    bz_json_put_str(&j, "role", role);
    bz_json_put_str(&j, "content", content->of.text);
    bz_json_end(&j);
    if (!bz_json_finish(&j) || !more) {
        free(text.text);
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a message.");
    }
    m->json[m->n++] = text.text;
    return BZ_OK;
}

bz_status bz_store_messages_parse(bz_store_messages *m, const char *json, size_t len, bz_error *err)
{
    bz_arena arena = {0};
    const bz_json_node *root;
    *m = (bz_store_messages){0};
    bz_status status = bz_json_read(&root, json, len, &arena, err);
    if (status == BZ_OK && root->kind != BZ_JSON_ARRAY && root->kind != BZ_JSON_NULL) {
        status = bz_fail(err, BZ_BAD_FILE, "it is not a list");
    }
    for (const bz_json_node *node = status == BZ_OK ? bz_json_first(root) : NULL;
         node && status == BZ_OK; node = node->next) {
        status = add_message(m, node, err);
    }
    bz_arena_free(&arena);
    if (status != BZ_OK) {
        bz_store_messages_free(m);
    }
    return status;
}

void bz_store_messages_free(bz_store_messages *m)
{
    for (size_t i = 0; i < m->n; i++) {
        free(m->json[i]);
    }
    free(m->json);
    *m = (bz_store_messages){0};
}
