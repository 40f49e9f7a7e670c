/* Makes and frees a batch and its slots. */
#include <stdlib.h>

#include "base/options.h"
#include "session/batch_internal.h"
#include "cpu/cpu.h"

enum { DEFAULT_SLOTS = 4 };

static void free_plan(bz_batch *b, session_plan *p)
{
    if (p->schedule) {
        b->backend->release(b->backend, p->schedule);
    }
    bz_plan_free(p->plan);
}

void bz_batch_free(bz_batch *b)
{
    if (!b) {
        return;
    }
    bz_canvas_batch_free(b->canvas);
    for (uint32_t i = 0; i < b->n_slots; i++) {
        batch_slot *s = &b->slots[i];
        if (b->backend) {
            bz_rings_free(&s->rings, b->backend);
        }
        if (s->kv) {
            b->backend->kv_free(b->backend, s->kv);
        }
        bz_sampler_free(s->sampler);
        free(s->tokens);
    }
    for (int i = 0; i < BZ_BATCH_BUCKETS; i++) {
        free_plan(b, &b->one[i]);
    }
    free_plan(b, &b->many);
    if (b->backend) {
        b->backend->free(b->backend);
    }
    free(b->last);
    free(b);
}

static bz_status make_slot(bz_batch *b, batch_slot *s, bz_error *err)
{
    const bz_text_model *m = &b->model->text;
    s->rings = (bz_rings){.window = m->config.window, .n_snapshots = 1};
    s->tokens = malloc(b->context * sizeof *s->tokens);
    if (!s->tokens) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a sequence of %u tokens.", b->context);
    }
    bz_status status = bz_model_sampler(b->model, b->context, &s->sampler, err);
    if (status == BZ_OK) {
        status = b->backend->kv_new(b->backend, m->caches, m->n_caches, false, b->chunk - 1, &s->kv,
                                    err);
    }
    return status;
}

static bz_status make_slots(bz_batch *b, uint32_t slots, bz_error *err)
{
    bz_status status = BZ_OK;
    for (uint32_t i = 0; i < slots && status == BZ_OK; i++) {
        b->n_slots = i + 1;
        status = make_slot(b, &b->slots[i], err);
        b->kv[i] = b->slots[i].kv;
    }
    return status;
}

bz_status bz_batch_new(bz_batch **out, const bz_model *model, const bz_batch_options *options,
                       bz_error *err)
{
    const bz_config *c = &model->text.config;
    bz_batch_options o;
    bz_status status = BZ_READ_BATCH(&o, options, err);
    if (status != BZ_OK) {
        return status;
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
    if (model->gpu) {
        return bz_fail(err, BZ_BAD_REQUEST, "A batch runs on the CPU only; open the model there.");
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
                                       .kernels = o.kernels};
        status = bz_canvas_batch_new(&b->canvas, model, &so, err);
        if (status != BZ_OK) {
            bz_batch_free(b);
            return status;
        }
        *out = b;
        return BZ_OK;
    }
    b->context = o.context ? o.context : bz_model_default_context(model);
    b->chunk = o.chunk && o.chunk < BZ_MAX_CHUNK ? o.chunk : BZ_MAX_CHUNK;
    b->vocab = c->vocab;
    b->last = malloc(b->context * sizeof *b->last);
    const bz_cpu_options cpu = {.threads = o.threads, .kernels = o.kernels};
    status = b->last ? BZ_OK : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a batch.");
    if (status == BZ_OK) {
        status = bz_cpu_new(&b->backend, &model->text.weights.table,
                            (const uint8_t *const *)model->weight_bytes, &cpu, err);
    }
    if (status == BZ_OK) {
        status = make_slots(b, o.slots ? o.slots : DEFAULT_SLOTS, err);
    }
    if (status != BZ_OK) {
        bz_batch_free(b);
        return status;
    }
    *out = b;
    return BZ_OK;
}

uint64_t bz_batch_reused(const bz_batch *b)
{
    return b->canvas ? bz_canvas_batch_reused(b->canvas) : b->reused;
}
