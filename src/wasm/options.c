#include "wasm/options.h"

#if defined(__wasm__)

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/json_read.h"
#include "text/request.h"

typedef enum option_kind {
    BOOL,
    U32,
    I32,
    U64,
    F32,
    TEXT,
    STOPS,
    STOP_IDS,
    BIAS,
    DRAFT
} option_kind;

typedef struct option {
    const char *key;
    option_kind kind;
    size_t at; /* in the struct; of a list: its pointer */
} option;

#define OPEN(key, kind, field)                                                                     \
    {                                                                                              \
        key, kind, offsetof(bz_open_options, field)                                                \
    }
static const option open_table[] = {
    OPEN("device", TEXT, device),       OPEN("ple", TEXT, ple),
    OPEN("gpuMemory", U64, gpu_memory), OPEN("headersOnly", BOOL, headers_only),
    OPEN("drafter", TEXT, draft),
};

#define SESSION(key, kind, field)                                                                  \
    {                                                                                              \
        key, kind, offsetof(bz_session_options, field)                                             \
    }
static const option session_table[] = {
    SESSION("context", U32, context),  SESSION("chunk", U32, chunk),
    SESSION("kernels", TEXT, kernels), SESSION("noFuse", BOOL, no_fuse),
    SESSION("exact", BOOL, exact),     SESSION("snapshots", U32, snapshots),
    SESSION("kv", TEXT, kv),
};

#define ENCODER(key, kind, field)                                                                  \
    {                                                                                              \
        key, kind, offsetof(bz_encoder_options, field)                                             \
    }
static const option encoder_table[] = {
    ENCODER("budget", U32, budget),
    ENCODER("keep", U32, keep),
    ENCODER("kernels", TEXT, kernels),
    ENCODER("exact", BOOL, exact),
};

#define EMBEDDER(key, kind, field)                                                                 \
    {                                                                                              \
        key, kind, offsetof(bz_embedder_options, field)                                            \
    }
static const option embedder_table[] = {
    EMBEDDER("kernels", TEXT, kernels),
    EMBEDDER("noFuse", BOOL, no_fuse),
    EMBEDDER("exact", BOOL, exact),
};

#define EMBED(key, kind, field)                                                                    \
    {                                                                                              \
        key, kind, offsetof(bz_embed_options, field)                                               \
    }
static const option embed_table[] = {
    EMBED("dimensions", U32, dimensions),
    EMBED("truncate", BOOL, truncate),
    EMBED("task", TEXT, task),
    EMBED("title", TEXT, title),
};

#define GENERATE(key, kind, field)                                                                 \
    {                                                                                              \
        key, kind, offsetof(bz_generate_options, field)                                            \
    }
static const option generate_table[] = {
    GENERATE("maxTokens", U32, max_tokens),
    GENERATE("ignoreEnd", BOOL, ignore_end),
    GENERATE("showControl", BOOL, show_control),
    GENERATE("logProbs", BOOL, log_probs),
    GENERATE("topLogProbs", U32, top_log_probs),
    GENERATE("greedy", BOOL, sampling.greedy),
    GENERATE("temperature", F32, sampling.temperature),
    GENERATE("topK", I32, sampling.top_k),
    GENERATE("topP", F32, sampling.top_p),
    GENERATE("minP", F32, sampling.min_p),
    GENERATE("repetition", F32, sampling.repetition),
    GENERATE("presence", F32, sampling.presence),
    GENERATE("frequency", F32, sampling.frequency),
    GENERATE("window", I32, sampling.window),
    GENERATE("seed", U64, sampling.seed),
    GENERATE("bias", BIAS, sampling.bias),
    GENERATE("stopIds", STOP_IDS, stop_ids),
    GENERATE("stop", STOPS, stop),
    GENERATE("draft", DRAFT, draft),
    GENERATE("drafts", U32, drafts),
};

static bool whole(const bz_json_node *node, double low, double high, double *value)
{
    return bz_json_to_double(node, value) && *value == floor(*value) && *value >= low &&
           *value <= high;
}

static const char *text_of(const bz_json_node *node, bz_arena *arena)
{
    if (!bz_json_is(node, BZ_JSON_STRING) || memchr(node->of.text.data, 0, node->of.text.len)) {
        return NULL;
    }
    char *copy = bz_arena_alloc(arena, node->of.text.len + 1);
    if (copy) {
        memcpy(copy, node->of.text.data, node->of.text.len);
        copy[node->of.text.len] = 0;
    }
    return copy;
}

static bool put_stops(bz_generate_options *o, const bz_json_node *list, bz_arena *arena)
{
    const char **strings = bz_arena_array(arena, list->n + (size_t)1, sizeof *strings);
    for (const bz_json_node *node = list->of.first; strings && node; node = node->next) {
        strings[o->n_stop] = text_of(node, arena);
        if (!strings[o->n_stop++]) {
            return false;
        }
    }
    o->stop = strings;
    return strings != NULL;
}

static bool put_stop_ids(bz_generate_options *o, const bz_json_node *list, bz_arena *arena)
{
    int32_t *ids = bz_arena_array(arena, list->n + (size_t)1, sizeof *ids);
    for (const bz_json_node *node = list->of.first; ids && node; node = node->next) {
        double id;
        if (!whole(node, 0, INT32_MAX, &id)) {
            return false;
        }
        ids[o->n_stop_ids++] = (int32_t)id;
    }
    o->stop_ids = ids;
    return ids != NULL;
}

/* [[token, number], ...]; null, which is how JSON writes -Infinity: never chosen. */
static bool put_bias(bz_sampling *s, const bz_json_node *list, bz_arena *arena)
{
    bz_bias *all = bz_arena_array(arena, list->n + (size_t)1, sizeof *all);
    for (const bz_json_node *node = list->of.first; all && node; node = node->next) {
        const bz_json_node *token =
            bz_json_is(node, BZ_JSON_ARRAY) && node->n == 2 ? node->of.first : NULL;
        double id, bias = -INFINITY;
        if (!token || !whole(token, 0, INT32_MAX, &id) ||
            (token->next->kind != BZ_JSON_NULL && !bz_json_to_double(token->next, &bias))) {
            return false;
        }
        all[s->n_bias++] = (bz_bias){(int32_t)id, (float)bias};
    }
    s->bias = all;
    return all != NULL;
}

static bool put(void *options, const option *entry, const bz_json_node *node, bz_arena *arena)
{
    void *to = (char *)options + entry->at;
    const bool list = node->kind == BZ_JSON_ARRAY;
    double value;
    switch (entry->kind) {
    case BOOL:
        *(bool *)to = node->kind == BZ_JSON_TRUE;
        return node->kind == BZ_JSON_TRUE || node->kind == BZ_JSON_FALSE;
    case U32:
        if (!whole(node, 0, UINT32_MAX, &value)) {
            return false;
        }
        *(uint32_t *)to = (uint32_t)value;
        return true;
    case I32:
        if (!whole(node, INT32_MIN, INT32_MAX, &value)) {
            return false;
        }
        *(int32_t *)to = (int32_t)value;
        return true;
    case U64:
        if (!whole(node, 0, 9007199254740992.0, &value)) {
            return false;
        }
        *(uint64_t *)to = (uint64_t)value;
        return true;
    case F32:
        if (!bz_json_to_double(node, &value)) {
            return false;
        }
        *(float *)to = (float)value;
        return true;
    case TEXT: return (*(const char **)to = text_of(node, arena)) != NULL;
    case DRAFT: return bz_draft_named(to, bz_json_string(node));
    case STOPS: return list && put_stops(options, node, arena);
    case STOP_IDS: return list && put_stop_ids(options, node, arena);
    case BIAS: return list && put_bias(&((bz_generate_options *)options)->sampling, node, arena);
    }
    return false;
}

static bz_status read_all(void *options, const option *table, size_t n, bz_str json,
                          bz_arena *arena, bz_error *err)
{
    const bz_json_node *root;
    bz_status status = bz_json_read(&root, json.data, json.len, arena, err);
    if (status == BZ_OK && root->kind != BZ_JSON_OBJECT) {
        return bz_fail(err, BZ_BAD_REQUEST, "Options are a JSON object.");
    }
    const bz_json_node *node = status == BZ_OK ? root->of.first : NULL;
    for (; node && status == BZ_OK; node = node->next) {
        char shown[200];
        size_t i = 0;
        while (i < n && !bz_str_is(node->key, table[i].key)) {
            i++;
        }
        if (i == n) {
            status = bz_fail(err, BZ_BAD_REQUEST, "There is no option '%s'.",
                             bz_str_show(node->key, shown));
        } else if (!put(options, &table[i], node, arena)) {
            status = bz_fail(err, BZ_BAD_REQUEST, "The option '%s' cannot have this value.",
                             table[i].key);
        }
    }
    return status;
}

#define COUNT(table) (sizeof(table) / sizeof *(table))

bz_status bz_wasm_open_options(bz_open_options *o, bz_str json, bz_arena *arena, bz_error *err)
{
    *o = (bz_open_options){.size = sizeof(bz_open_options)};
    return read_all(o, open_table, COUNT(open_table), json, arena, err);
}

bz_status bz_wasm_session_options(bz_session_options *o, bz_str json, bz_arena *arena,
                                  bz_error *err)
{
    *o = (bz_session_options){.size = sizeof(bz_session_options)};
    return read_all(o, session_table, COUNT(session_table), json, arena, err);
}

bz_status bz_wasm_encoder_options(bz_encoder_options *o, bz_str json, bz_arena *arena,
                                  bz_error *err)
{
    *o = (bz_encoder_options){.size = sizeof(bz_encoder_options)};
    return read_all(o, encoder_table, COUNT(encoder_table), json, arena, err);
}

bz_status bz_wasm_embedder_options(bz_embedder_options *o, bz_str json, bz_arena *arena,
                                   bz_error *err)
{
    *o = (bz_embedder_options){.size = sizeof(bz_embedder_options)};
    return read_all(o, embedder_table, COUNT(embedder_table), json, arena, err);
}

bz_status bz_wasm_embed_options(bz_embed_options *o, bz_str json, bz_arena *arena, bz_error *err)
{
    *o = (bz_embed_options){.size = sizeof(bz_embed_options)};
    return read_all(o, embed_table, COUNT(embed_table), json, arena, err);
}

bz_status bz_wasm_generate_options(bz_generate_options *o, bz_str json, bz_arena *arena,
                                   bz_error *err)
{
    *o = (bz_generate_options){.size = sizeof(bz_generate_options)};
    return read_all(o, generate_table, COUNT(generate_table), json, arena, err);
}

#endif
