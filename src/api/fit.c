/* Whether a model fits on a GPU, from its header: the memory of weights, caches and a pass. WebGPU
 * does not report how much memory there is, so that only its limits refuse a model for certain; for
 * the rest the caller has to know the memory. */
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "session/model.h"
#include "model/memory.h"
#include "session/session.h"

enum { MIN_BUFFER = 256 << 20, MIN_BINDING = 128 << 20 }; /* limits that WebGPU guarantees */
enum { CONTEXT_STEP = 256 };                              /* minimum growth of a cache, in rows */

bz_status bz_table_place_named(bz_table_place *out, const char *name, bz_error *err)
{
    static const char *const names[] = {
        [BZ_TABLE_AUTO] = "auto", [BZ_TABLE_RESIDENT] = "resident", [BZ_TABLE_IN_FILE] = "file"};
    for (int i = 0; name && i < 3; i++) {
        if (strcmp(name, names[i]) == 0) {
            *out = (bz_table_place)i;
            return BZ_OK;
        }
    }
    return name ? bz_fail(err, BZ_BAD_REQUEST,
                          "Per-layer embeddings can be auto, resident or file, not '%.40s'.", name)
                : BZ_OK;
}

static uint64_t caches_for(const bz_text_model *m, bz_cache_type type, uint32_t context)
{
    const uint32_t rows = (context + CONTEXT_STEP - 1) / CONTEXT_STEP * CONTEXT_STEP;
    return bz_memory_cache(m, type, rows, BZ_MAX_CHUNK + BZ_AHEAD);
}

/* Bytes of the weights with or without that tensor. */
static bz_status weigh(const bz_text_model *m, const gpu_limits *l, bz_weight left_out,
                       uint64_t *bytes, bz_error *err)
{
    gpu_weights w;
    bz_status status = gpu_weights_place(&w, l, &m->weights.table, left_out, err);
    *bytes = w.bytes;
    if (left_out.id) {
        *bytes += gpu_table_bytes(l, bz_weight_of(&m->weights.table, left_out));
    }
    gpu_weights_free(&w, NULL);
    return status;
}

/* Of the largest pass that one binding has room for (bz_session_shrink_chunk). A quarter more:
 * fused steps are placed apart, and rows are kept in 8 bits too. */
static uint64_t work_of(const bz_text_model *m, const gpu_limits *l)
{
    const uint32_t chunks[] = {BZ_MAX_CHUNK, BZ_SMALL_CHUNK};
    bz_memory memory = {0};
    for (int i = 0; i < 2; i++) {
        if (bz_memory_predict(&memory, m, BZ_CACHE_F16, chunks[i], NULL) == BZ_OK &&
            memory.arena_bytes <= l->max_binding) {
            break;
        }
    }
    return memory.arena_bytes + memory.arena_bytes / 4;
}

/* The towers: they are loaded when something is to be seen or heard, so both count. A tower of few
 * tokens has its own arena; where that is larger than a binding it runs on the CPU. */
static bz_status weigh_towers(const bz_towers *t, const gpu_limits *l, bz_fit *fit, bz_error *err)
{
    enum { PATCHES = 9, CLIP_TOKENS = 750 }; /* of a token; of 30 seconds */
    gpu_weights w;
    bz_plan *plans[2] = {NULL, NULL};
    bz_status status = t->table.n ? gpu_weights_place(&w, l, &t->table, BZ_NO_WEIGHT, err) : BZ_OK;
    if (t->table.n == 0 || status != BZ_OK) {
        return status;
    }
    fit->towers = w.bytes;
    gpu_weights_free(&w, NULL);
    const uint32_t tokens = (t->vision.budget + 7) / 8 * 8;
    if (t->vision.kind == BZ_TOWER_LAYERS) {
        status = bz_vision_record(t, PATCHES * tokens, tokens, &plans[0], err);
    }
    if (status == BZ_OK && t->audio.kind == BZ_TOWER_LAYERS) {
        status = bz_audio_record(t, CLIP_TOKENS, &plans[1], err);
    }
    for (int i = 0; i < 2; i++) {
        fit->work +=
            plans[i] && plans[i]->arena_bytes <= l->max_binding ? plans[i]->arena_bytes : 0;
        bz_plan_free(plans[i]);
    }
    return status;
}

/* The longest context for which `room` bytes of caches are enough; at most `most`. */
static uint32_t context_in(const bz_text_model *m, bz_cache_type type, uint64_t room, uint32_t most)
{
    uint32_t low = 0, high = most / CONTEXT_STEP;
    while (low < high) {
        uint32_t middle = (low + high + 1) / 2;
        if (caches_for(m, type, middle * CONTEXT_STEP) <= room) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return caches_for(m, type, most) <= room ? most : low * CONTEXT_STEP;
}

static bz_status too_much(const bz_fit *f, uint32_t context, uint64_t memory, bool resident,
                          bz_error *err)
{
    const uint64_t total = f->weights + f->towers + f->caches + f->work;
    char advice[120] = "Use a smaller quantization, or run on the CPU.";
    if (resident && f->ple && total - f->ple <= memory) {
        strcpy(advice, "Leave the per-layer embeddings in the file.");
    } else if (f->max_context >= 2 * CONTEXT_STEP) {
        snprintf(advice, sizeof advice, "Use a context of at most %u, or a smaller quantization.",
                 f->max_context);
    }
    return bz_fail(err, BZ_OUT_OF_MEMORY,
                   "This model needs %.2f GB on the GPU (weights %.2f, a context of %u %.2f, "
                   "passes %.2f); there are %.2f GB. %s",
                   (double)total / 1e9, (double)(f->weights + f->towers) / 1e9, context,
                   (double)f->caches / 1e9, (double)f->work / 1e9, (double)memory / 1e9, advice);
}

/* With as many layers of a diffusion model streamed as it takes; false: even then it is too much.
 */
static bool fits_streamed(const bz_text_model *m, const gpu_limits *l, uint64_t memory, bz_fit *f)
{
    const uint64_t other = f->towers + f->caches + f->work;
    const bz_weights *table = &m->weights.table;
    uint32_t streamed = 0;
    gpu_weights w = {0};
    bool fits = m->config.canvas && memory > other &&
                gpu_weights_fit(l, table, BZ_NO_WEIGHT, memory - other, &streamed, NULL) == BZ_OK &&
                gpu_weights_place_streamed(&w, l, table, BZ_NO_WEIGHT, streamed, NULL) == BZ_OK &&
                w.bytes <= memory - other;
    f->weights = fits ? w.bytes : f->weights;
    gpu_weights_free(&w, NULL);
    return fits;
}

static gpu_limits limits_for(const bz_model *m, const bz_fit_options *o)
{
    const gpu *g = bz_model_device(m);
    gpu_limits l = {.max_buffer = MIN_BUFFER, .max_binding = MIN_BINDING};
    if (g) {
        l = *gpu_limits_of(g);
    }
    l.max_buffer = o->max_buffer ? o->max_buffer : l.max_buffer;
    l.max_binding = o->max_binding ? o->max_binding : l.max_binding;
    return l;
}

static bz_status fit_model(const bz_model *model, const bz_fit_options *o, bz_fit *fit,
                           bz_error *err)
{
    const bz_text_model *m = &model->text;
    const gpu_limits l = limits_for(model, o);
    const bz_weight table = m->weights.per_layer_token_embd;
    const uint32_t limit = m->config.context;
    const uint32_t context = o->context ? o->context : bz_model_default_context(model);
    uint64_t without = 0;
    bz_table_place place = BZ_TABLE_AUTO;
    if (l.max_buffer < MIN_BUFFER || l.max_binding < MIN_BINDING) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "Every GPU allows buffers of %d MB and bindings of %d MB.", MIN_BUFFER >> 20,
                       MIN_BINDING >> 20);
    }
    bz_cache_type type;
    bz_status status = bz_table_place_named(&place, o->ple, err);
    if (status == BZ_OK) {
        status = bz_cache_type_named(&type, o->kv, false, err);
    }
    if (status == BZ_OK && context > limit) {
        status =
            bz_fail(err, BZ_BAD_REQUEST, "A context of %u was requested; this model goes up to %u.",
                    context, limit);
    }
    if (status == BZ_OK) {
        status = weigh(m, &l, BZ_NO_WEIGHT, &fit->weights, err);
    }
    if (status == BZ_OK && table.id) {
        status = weigh(m, &l, table, &without, err);
        fit->ple = fit->weights > without ? fit->weights - without : 0;
    }
    if (status != BZ_OK) {
        return status;
    }
    fit->caches = caches_for(m, type, context);
    fit->work = work_of(m, &l);
    status = weigh_towers(&model->towers, &l, fit, err);
    if (status != BZ_OK) {
        return status;
    }
    const uint64_t room = o->memory ? o->memory : UINT64_MAX;
    fit->ple_in_file =
        table.id &&
        (place == BZ_TABLE_IN_FILE ||
         (place == BZ_TABLE_AUTO && fit->weights + fit->towers + fit->caches + fit->work > room));
    fit->weights -= fit->ple_in_file ? fit->ple : 0;
    uint64_t fixed = fit->weights + fit->towers + fit->work;
    if (fixed + fit->caches > room && fits_streamed(m, &l, room, fit)) {
        fixed = fit->weights + fit->towers + fit->work;
    }
    fit->max_context = room > fixed ? context_in(m, type, room - fixed, limit) : 0;
    return context > fit->max_context
               ? too_much(fit, context, room, place == BZ_TABLE_RESIDENT, err)
               : BZ_OK;
}

bz_status bz_model_fit(const bz_model *model, const bz_fit_options *options, bz_fit *fit,
                       bz_error *err)
{
    bz_fit_options o;
    bz_fit result = {.size = sizeof result};
    bz_status status = BZ_READ_FIT(&o, options, err);
    if (status == BZ_OK) { /* of a wrong size: said before anything is computed */
        status = BZ_WRITE_FIT(fit, &result, err);
    }
    if (status != BZ_OK) {
        return status;
    }
    status = fit_model(model, &o, &result, err);
    BZ_WRITE_FIT(fit, &result, NULL); /* also where it does not fit */
    return status;
}
