#include "api/inspect.h"

#include <string.h>

#include "model/memory.h"
#include "session/session.h"

enum { SMALLEST_CONTEXT = 2048 };

/* ---- files ------------------------------------------------------------------------ */

static const bz_gguf *parsed(const bz_model *m, size_t i)
{
    return m->files[i].parsed ? &m->files[i].gguf : NULL;
}

static bool is_of(const bz_gguf *g, const char *wanted)
{
    bz_str architecture;
    return bz_gguf_get_str(bz_gguf_find(g, "general.architecture"), &architecture) &&
           bz_str_is(architecture, wanted);
}

/* An mmproj file: vision and audio towers, and nothing else. */
static bool is_media(const bz_gguf *g)
{
    return is_of(g, "clip");
}

static bool is_drafter(const bz_gguf *g)
{
    return is_of(g, "gemma4-assistant");
}

/* The file with the metadata: the one that has a tokenizer, as parts but the first have none. A
 * drafter may have one, too. */
static const bz_gguf *main_of(const bz_model *m)
{
    const bz_gguf *found = NULL, *drafter = NULL;
    for (size_t i = 0; i < m->n_files; i++) {
        const bz_gguf *g = parsed(m, i);
        if (g && is_drafter(g)) {
            drafter = g;
        } else if (g && (!found || bz_gguf_find(g, "tokenizer.ggml.tokens"))) {
            found = g;
        }
    }
    return found ? found : drafter;
}

static void put_key(bz_json *j, const char *name, const bz_gguf *g, const char *key)
{
    bz_str text;
    bz_json_key(j, name);
    if (g && bz_gguf_get_str(bz_gguf_find(g, key), &text)) {
        bz_json_str(j, text);
    } else {
        bz_json_null(j);
    }
}

static void put_files(bz_json *j, const bz_model *m)
{
    bz_json_key(j, "files");
    bz_json_array(j);
    for (size_t i = 0; i < m->n_files; i++) {
        const bz_gguf *g = parsed(m, i);
        bz_json_object(j);
        bz_json_put_text(j, "name", m->files[i].name);
        bz_json_put_uint(j, "bytes", m->files[i].size);
        bz_json_put_uint(j, "headerBytes", g ? g->header_size : 0);
        bz_json_put_uint(j, "tensors", g ? g->n_tensors : 0);
        bz_json_put_bool(j, "media", g && is_media(g));
        bz_json_put_bool(j, "drafter", g && is_drafter(g));
        bz_json_end(j);
    }
    bz_json_end(j);
}

/* ---- tensors ---------------------------------------------------------------------- */

static bool begins(bz_str name, const char *with)
{
    const size_t n = strlen(with);
    return name.len >= n && memcmp(name.data, with, n) == 0;
}

/* Towers by the names of their tensors: llama.cpp's mmproj files and Ollama's single ones. */
static bool has_tower(const bz_model *m, const char *prefix, const char *other,
                      const char *projector)
{
    for (size_t i = 0; i < m->n_files; i++) {
        const bz_gguf *g = parsed(m, i);
        for (size_t k = 0; g && k < g->n_tensors; k++) {
            const bz_str name = g->tensors[k].name;
            if (begins(name, prefix) || begins(name, other) || begins(name, projector)) {
                return true;
            }
        }
    }
    return false;
}

bz_type_sum bz_inspect_types(const bz_model *m, bz_type_sum sums[BZ_TYPE_END])
{
    bz_type_sum all = {0};
    memset(sums, 0, BZ_TYPE_END * sizeof *sums);
    for (size_t i = 0; i < m->n_files; i++) {
        const bz_gguf *g = parsed(m, i);
        for (size_t k = 0; g && k < g->n_tensors; k++) {
            const bz_gguf_tensor *t = &g->tensors[k];
            const uint64_t values = t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
            bz_type_sum *const two[] = {&sums[t->type], &all};
            for (int n = 0; n < 2; n++) {
                two[n]->tensors++;
                two[n]->bytes += t->size;
                two[n]->values += values;
            }
        }
    }
    return all;
}

static void put_types(bz_json *j, const bz_model *m)
{
    bz_type_sum sums[BZ_TYPE_END];
    bz_json_put_uint(j, "parameters", bz_inspect_types(m, sums).values);
    bz_json_key(j, "types");
    bz_json_array(j);
    for (uint32_t i = 0; i < BZ_TYPE_END; i++) {
        if (sums[i].tensors) {
            bz_json_object(j);
            bz_json_put_text(j, "type", bz_type_of(i)->name);
            bz_json_put_uint(j, "tensors", sums[i].tensors);
            bz_json_put_uint(j, "bytes", sums[i].bytes);
            bz_json_put_bool(j, "runs", bz_type_of(i)->runs);
            bz_json_end(j);
        }
    }
    bz_json_end(j);
}

/* ---- the model -------------------------------------------------------------------- */

static void put_model(bz_json *j, const bz_config *c)
{
    bz_json_object(j);
    bz_json_put_uint(j, "layers", c->layers);
    bz_json_put_uint(j, "width", c->width);
    bz_json_put_uint(j, "vocabulary", c->vocab);
    bz_json_put_uint(j, "context", c->context);
    bz_json_put_uint(j, "window", c->window);
    bz_json_put_uint(j, "experts", c->experts);
    bz_json_put_uint(j, "expertsUsed", c->experts_used);
    bz_json_end(j);
}

static void put_memory(bz_json *j, const bz_text_model *m, bz_cache_type type)
{
    bz_memory memory;
    bz_error err;
    if (bz_memory_predict(&memory, m, type, BZ_MAX_CHUNK, &err) != BZ_OK) {
        bz_json_null(j);
        return;
    }
    bz_json_object(j);
    bz_json_put_uint(j, "weights", memory.weight_bytes);
    bz_json_put_uint(j, "tables", memory.table_bytes);
    bz_json_put_uint(j, "perToken", memory.token_bytes);
    bz_json_put_uint(j, "activations", memory.arena_bytes);
    bz_json_key(j, "caches");
    bz_json_array(j);
    for (uint32_t context = SMALLEST_CONTEXT;; context *= 2) {
        const bool last = context >= m->config.context;
        const uint32_t n = last ? m->config.context : context;
        bz_json_object(j);
        bz_json_put_uint(j, "context", n);
        bz_json_put_uint(j, "bytes", bz_memory_cache(m, type, n, BZ_MAX_CHUNK));
        bz_json_end(j);
        if (last) {
            break;
        }
    }
    bz_json_end(j);
    bz_json_end(j);
}

/* On a GPU, which keeps weights in an order of its own. */
static void put_gpu(bz_json *j, const bz_model *m, const bz_fit_options *options)
{
    bz_fit fit = {.size = sizeof fit};
    bz_error err;
    const bool fits = bz_model_fit(m, options, &fit, &err) == BZ_OK;
    bz_json_object(j);
    bz_json_put_bool(j, "fits", fits);
    bz_json_put_text(j, "text", fits ? "" : err.text);
    bz_json_put_uint(j, "weights", fit.weights);
    bz_json_put_uint(j, "towers", fit.towers);
    bz_json_put_uint(j, "perLayer", fit.ple);
    bz_json_put_uint(j, "work", fit.work);
    bz_json_end(j);
}

void bz_inspect(bz_json *j, const bz_model *m, const bz_error *refusal, const bz_fit_options *fit)
{
    const bz_gguf *g = main_of(m);
    uint64_t bytes = 0;
    for (size_t i = 0; i < m->n_files; i++) {
        bytes += m->files[i].size;
    }
    bz_json_object(j);
    bz_json_put_bool(j, "runs", !refusal);
    bz_json_put_text(j, "code", bz_status_name(refusal ? refusal->code : BZ_OK));
    bz_json_put_text(j, "text", refusal ? refusal->text : "");
    bz_json_put_uint(j, "bytes", bytes);
    put_key(j, "architecture", g, "general.architecture");
    put_key(j, "name", g, "general.name");
    put_key(j, "sizeLabel", g, "general.size_label");
    bz_json_put_bool(j, "vision",
                     has_tower(m, "v.", "model.vision_tower.", "mm.input_projection."));
    bz_json_put_bool(j, "audio", has_tower(m, "a.", "model.audio_tower.", "mm.a."));
    put_types(j, m);
    bz_json_key(j, "model");
    if (refusal) {
        bz_json_null(j);
    } else {
        put_model(j, &m->text.config);
    }
    bz_json_key(j, "memory");
    if (refusal) {
        bz_json_null(j);
    } else {
        bz_cache_type type;
        bz_cache_type_named(&type, fit->kv, false, NULL);
        put_memory(j, &m->text, type);
    }
    bz_json_key(j, "gpu");
    if (refusal) {
        bz_json_null(j);
    } else {
        put_gpu(j, m, fit);
    }
    put_files(j, m);
    bz_json_end(j);
}
