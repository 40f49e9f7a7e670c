/* Vectors of texts, for JavaScript. */
#include "bezel_embed.h"

#if defined(__wasm__)

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json_read.h"
#include "wasm/handles.h"
#include "wasm/options.h"

/* An embedder with the memory of its job's texts. */
typedef struct wasm_embedder {
    bz_embedder *e;
    bz_arena arena;
} wasm_embedder;

EXPORT(model_embedding) uint32_t wasm_model_embedding(const bz_model *m)
{
    return handle_is(HANDLE_MODEL, m) ? bz_model_embedding(m) : 0;
}

EXPORT(embedder_new)
wasm_embedder *wasm_embedder_new(host *h, const bz_model *m, const char *json, uint32_t len)
{
    if (!(handle_check(h, HANDLE_MODEL, m) && handle_memory(h, json, len))) {
        return NULL;
    }
    bz_embedder_options options;
    bz_arena arena = {0};
    wasm_embedder *w = calloc(1, sizeof *w);
    if (!w) {
        bz_fail(&h->error, BZ_OUT_OF_MEMORY, "No memory for an embedder.");
        return NULL;
    }
    if (bz_wasm_embedder_options(&options, (bz_str){json, len}, &arena, &h->error) != BZ_OK ||
        bz_embedder_new(&w->e, m, &options, &h->error) != BZ_OK) {
        free(w);
        w = NULL;
    }
    bz_arena_free(&arena);
    return handle_add(HANDLE_EMBEDDER, w, m);
}

void wasm_embedder_destroy(void *embedder)
{
    wasm_embedder *w = embedder;
    bz_embedder_free(w->e);
    bz_arena_free(&w->arena);
    free(w);
}

EXPORT(embedder_free) void wasm_embedder_free(wasm_embedder *w)
{
    handle_free(HANDLE_EMBEDDER, w);
}

EXPORT(embedder_longest) uint32_t wasm_embedder_longest(const wasm_embedder *w)
{
    return handle_is(HANDLE_EMBEDDER, w) ? bz_embedder_longest(w->e) : 0;
}

/* A sentence, terminated; 0: none. */
EXPORT(embedder_notice) const char *wasm_embedder_notice(const wasm_embedder *w)
{
    return handle_is(HANDLE_EMBEDDER, w) ? bz_embedder_notice(w->e) : NULL;
}

static bool read_ids(bz_embed_input *in, const bz_json_node *list, bz_arena *arena)
{
    int32_t *ids = bz_arena_array(arena, list->n + (size_t)1, sizeof *ids);
    size_t n = 0;
    for (const bz_json_node *node = list->of.first; ids && node; node = node->next) {
        double id;
        if (!bz_json_to_double(node, &id) || id < 0 || id > INT32_MAX ||
            id != (double)(int32_t)id) {
            return false;
        }
        ids[n++] = (int32_t)id;
    }
    *in = (bz_embed_input){.ids = ids, .n_ids = n};
    return ids != NULL;
}

/* inputs: [text or list of tokens, ...]. */
static bool read_inputs(const bz_json_node *list, bz_arena *arena, bz_embed_input **out)
{
    bz_embed_input *inputs = bz_arena_array(arena, list->n + (size_t)1, sizeof *inputs);
    size_t n = 0;
    for (const bz_json_node *node = list->of.first; inputs && node; node = node->next, n++) {
        if (node->kind == BZ_JSON_STRING) {
            inputs[n] = (bz_embed_input){.text = node->of.text.data, .len = node->of.text.len};
        } else if (node->kind != BZ_JSON_ARRAY || !read_ids(&inputs[n], node, arena)) {
            return false;
        }
    }
    *out = inputs;
    return inputs != NULL;
}

/* A job over `inputs`, a JSON array, with the options of another text. */
EXPORT(embed)
bz_job *wasm_embed(host *h, wasm_embedder *w, const char *inputs, uint32_t len, const char *json,
                   uint32_t json_len)
{
    if (!(handle_check(h, HANDLE_EMBEDDER, w) && handle_memory(h, inputs, len) &&
          handle_memory(h, json, json_len))) {
        return NULL;
    }
    const bz_json_node *list;
    bz_embed_options options;
    bz_embed_input *texts;
    bz_job *job = NULL;
    handle_free_users(w); /* the job before, and its memory */
    bz_arena_free(&w->arena);
    w->arena = (bz_arena){0};
    if (bz_wasm_embed_options(&options, (bz_str){json, json_len}, &w->arena, &h->error) != BZ_OK ||
        bz_json_read(&list, inputs, len, &w->arena, &h->error) != BZ_OK) {
        return NULL;
    }
    if (list->kind != BZ_JSON_ARRAY || !read_inputs(list, &w->arena, &texts)) {
        bz_fail(&h->error, BZ_BAD_REQUEST,
                "The input is not a list of texts or of lists of tokens.");
        return NULL;
    }
    bz_embed_texts(w->e, texts, list->n, &options, &job, &h->error);
    return handle_add(HANDLE_JOB, job, w);
}

/* report: where the vectors are, their count, the numbers of each, where the counts of tokens are;
 * of a job that is done. */
EXPORT(job_vectors) void wasm_job_vectors(host *h, const bz_job *job)
{
    size_t n;
    uint32_t d;
    if (!handle_check(h, HANDLE_JOB, job)) {
        return;
    }
    h->report.numbers[0] = address(bz_job_vectors(job, &n, &d));
    h->report.numbers[1] = (double)n;
    h->report.numbers[2] = d;
    h->report.numbers[3] = address(bz_job_vector_tokens(job, &n));
}

#endif
