/* Makes and frees a batch and its slots. */
#include <stdlib.h>

#include "base/options.h"
#include "session/batch_device.h"

enum { DEFAULT_SLOTS = 4 };

static void free_plans(bz_batch *b)
{
    for (int i = 0; i < BZ_BATCH_BUCKETS; i++) {
        bz_plan_free(b->one[i].plan);
        b->one[i].plan = NULL;
    }
    for (int i = 0; i < BZ_BATCH_DECODE_SIZES; i++) {
        bz_plan_free(b->many[i].plan);
        b->many[i].plan = NULL;
    }
}

void bz_batch_free(bz_batch *b)
{
    if (!b) {
        return;
    }
    bz_canvas_batch_free(b->canvas);
    bz_lock_take(bz_model_lock(b->model));
    bz_batch_detach(b);
    bz_model_load_end(b->model, b);
    bz_lock_give(bz_model_lock(b->model));
    for (uint32_t i = 0; i < b->n_slots; i++) {
        bz_sampler_free(b->slots[i].sampler);
        bz_constraint_free(b->slots[i].constraint);
        free(b->slots[i].tokens);
    }
    free_plans(b);
    bz_adapter_set_free(b->adapters);
    free(b->last);
    free(b->lists);
    free(b);
}

/* Caches that those of another slot are made beside. */
static bz_kv *first_kv(const bz_batch *b)
{
    uint32_t i = 0;
    while (i < b->n_slots && !b->slots[i].kv) {
        i++;
    }
    return i < b->n_slots ? b->slots[i].kv : NULL;
}

bz_status bz_batch_make_slot(bz_batch *b, uint32_t index, bz_error *err)
{
    const bz_text_model *m = &b->model->text;
    batch_slot *s = &b->slots[index];
    if (s->kv) {
        return BZ_OK;
    }
    s->rings = (bz_rings){.window = m->config.window, .n_snapshots = 1};
    s->requested = false;
    s->tokens = s->tokens ? s->tokens : malloc(b->context * sizeof *s->tokens);
    if (!s->tokens) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a sequence of %u tokens.", b->context);
    }
    bz_status status =
        s->sampler ? BZ_OK : bz_model_sampler(b->model, b->context, &s->sampler, err);
    if (status == BZ_OK && b->backend) { /* else after the device is found */
        status = b->backend->kv_new(b->backend, m->caches, m->n_caches, b->cache_type, b->chunk - 1,
                                    first_kv(b), &s->kv, err);
    }
    b->kv[index] = s->kv;
    return status;
}

bz_status bz_batch_new(bz_batch **out, const bz_model *model, const bz_batch_options *options,
                       bz_error *err)
{
    const bz_config *c = &model->text.config;
    bz_batch_options o;
    bz_cache_type type = BZ_CACHE_F16;
    bz_status status = BZ_READ_BATCH(&o, options, err);
    if (status == BZ_OK) {
        status = bz_cache_type_named(&type, o.kv, o.exact, err);
    }
    if (status != BZ_OK) {
        return status;
    }
    if (bz_model_check_writes(model, err) != BZ_OK) {
        return BZ_UNSUPPORTED_MODEL;
    }
    if (o.slots > BZ_BATCH_MAX_SLOTS) {
        return bz_fail(err, BZ_BAD_REQUEST, "A batch has at most %d slots, not %u.",
                       BZ_BATCH_MAX_SLOTS, o.slots);
    }
    if (o.context > c->context) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "A context of %u is more than this model's %u; request a smaller one.",
                       o.context, c->context);
    }
    if (model->headers_only) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "The model was opened for its header only; open it with its weights.");
    }
    bz_batch *b = calloc(1, sizeof *b);
    if (!b) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a batch.");
    }
    b->model = model;
    if (c->canvas) {
        const bz_session_options so = {.size = sizeof so,
                                       .context = o.context,
                                       .chunk = o.chunk,
                                       .threads = o.threads,
                                       .kernels = o.kernels,
                                       .exact = o.exact,
                                       .no_fuse = o.no_fuse,
                                       .kv = o.kv};
        status = bz_canvas_batch_new(&b->canvas, model, &so, err);
        if (status != BZ_OK) {
            bz_batch_free(b);
            return status;
        }
        *out = b;
        return BZ_OK;
    }
    b->cache_type = type;
    b->context = o.context ? o.context : bz_model_default_context(model);
    b->chunk = o.chunk && o.chunk < BZ_MAX_CHUNK ? o.chunk : BZ_MAX_CHUNK;
    b->vocab = c->vocab;
    b->last = malloc(b->context * sizeof *b->last);
    b->options = o;
    b->n_slots = o.slots ? o.slots : DEFAULT_SLOTS;
    b->lists = model->gpu ? malloc(b->n_slots * sizeof *b->lists) : NULL;
    status = b->last && (b->lists || !model->gpu)
                 ? BZ_OK
                 : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a batch.");
    bz_lock_take(bz_model_lock(model));
    if (status == BZ_OK && (!model->gpu || bz_model_is_loaded(model))) {
        status = bz_batch_attach(b, err); /* else the first step does it */
    }
    if (status == BZ_OK && b->backend) {
        status = bz_batch_make_slot(b, 0, err);
    }
    bz_lock_give(bz_model_lock(model));
    if (status != BZ_OK) {
        bz_batch_free(b);
        return status;
    }
    b->options.kernels = NULL; /* the caller's memory */
    *out = b;
    return BZ_OK;
}

static bool is_idle(const bz_batch *b)
{
    bool idle = b->pass == NO_PASS;
    for (uint32_t i = 0; i < b->n_slots; i++) {
        idle = idle && b->slots[i].state == SLOT_FREE;
    }
    return idle;
}

/* Exchanges the set with *set, which is freed by the caller, without the model's lock. What the
 * slots hold was computed with the adapters that they had. */
static bz_status change_adapters(bz_batch *b, bz_adapter_set **set, bz_error *err)
{
    bz_adapter_set *before = b->adapters;
    bz_batch_detach(b);
    free_plans(b);
    for (uint32_t i = 0; i < b->n_slots; i++) {
        b->slots[i].n = b->slots[i].wanted = b->slots[i].shared = 0;
    }
    b->n_last = 0;
    b->adapters = *set;
    const bz_status status = b->model->gpu ? BZ_OK : bz_batch_attach(b, err);
    if (status == BZ_OK) {
        *set = before;
    } else {
        b->adapters = before;
        bz_batch_attach(b, NULL);
    }
    return status;
}

bz_status bz_batch_set_adapters(bz_batch *b, const bz_adapter_use *uses, size_t n, bz_error *err)
{
    bz_adapter_set *set = NULL;
    if (b->canvas) {
        return bz_canvas_batch_set_adapters(b->canvas, uses, n, err);
    }
    bz_status status = bz_adapter_set_new(&set, b->adapters, b->model, uses, n, err);
    if (status == BZ_OK && !bz_adapter_sets_equal(set, b->adapters)) {
        bz_lock_take(bz_model_lock(b->model));
        status = is_idle(b) ? change_adapters(b, &set, err)
                            : bz_fail(err, BZ_BAD_REQUEST,
                                      "The adapters of a batch can be changed when none of its "
                                      "sequences is running.");
        bz_lock_give(bz_model_lock(b->model));
    }
    bz_adapter_set_free(set);
    return status;
}

uint64_t bz_batch_reused(const bz_batch *b)
{
    return b->canvas ? bz_canvas_batch_reused(b->canvas) : b->reused;
}

uint32_t bz_batch_slot_reused(const bz_batch *b, uint32_t slot)
{
    return b->canvas ? bz_canvas_batch_last_reused(b->canvas) : b->slots[slot].reused;
}

bool bz_batch_has_free(const bz_batch *b)
{
    if (b->canvas) {
        return bz_canvas_batch_is_free(b->canvas);
    }
    for (uint32_t i = 0; i < b->n_slots; i++) {
        if (b->slots[i].state == SLOT_FREE) {
            return true;
        }
    }
    return false;
}

uint64_t bz_batch_cache_bytes(const bz_batch *b)
{
    uint64_t total = b->canvas ? bz_canvas_batch_cache_bytes(b->canvas) : 0;
    for (uint32_t i = 0; i < b->n_slots; i++) {
        total += b->backend && b->slots[i].kv ? b->backend->kv_bytes(b->slots[i].kv) : 0;
    }
    return total;
}
