/* From a lowered plan to a list: the dispatches for the caches of a pass, each with its bindings.
 * Done again when a buffer has been replaced. */
#include <stdlib.h>
#include <string.h>

#include "gpu/run/internal.h"

/* Grows the arena or the side buffer; the first `keep` bytes stay. */
static bool grow(gpu_backend *b, gpu_buffer *buffer, uint64_t *has, uint64_t bytes, uint64_t keep,
                 bz_error *err)
{
    const gpu_limits *l = gpu_limits_of(b->g);
    if (bytes <= *has) {
        return true;
    }
    if (bytes > l->max_binding) {
        bz_fail(err, BZ_OUT_OF_MEMORY,
                "A pass needs %.0f MB of activations; this GPU binds %.0f MB. Use a smaller chunk.",
                (double)bytes / 1e6, (double)l->max_binding / 1e6);
        return false;
    }
    bz_error why = {0};
    gpu_buffer fresh = gpu_buffer_new(b->g, bytes, GPU_STORAGE, &why);
    if (!fresh) {
        if (why.code == BZ_OUT_OF_MEMORY) {
            bz_fail(err, BZ_OUT_OF_MEMORY,
                    "A pass needs %.0f MB of activations, for which the GPU has no memory. Use a "
                    "smaller chunk or "
                    "context, or close other programs that use the GPU.",
                    (double)bytes / 1e6);
        } else {
            bz_fail(err, why.code, "%s", why.text);
        }
        return false;
    }
    if (*buffer) {
        if (keep && keep <= *has) {
            gpu_copy(b->g, *buffer, 0, fresh, 0, keep);
        }
        gpu_buffer_free(b->g, *buffer);
    }
    *buffer = fresh;
    *has = bytes;
    b->arena_generation++;
    return true;
}

static bool write_params(gpu_backend *b, bz_schedule *s, bz_error *err)
{
    uint8_t *slots = calloc(s->n ? s->n : 1, GPU_PARAMS_SLOT);
    if (!slots) {
        bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to schedule a plan.");
        return false;
    }
    if (s->params_capacity < s->n) {
        gpu_buffer fresh = gpu_buffer_new(b->g, (uint64_t)s->n * GPU_PARAMS_SLOT, GPU_UNIFORM, err);
        if (!fresh) {
            free(slots);
            return false;
        }
        if (s->params) {
            gpu_buffer_free(b->g, s->params);
        }
        s->params = fresh;
        s->params_capacity = s->n;
    }
    for (uint32_t i = 0; i < s->n; i++) {
        memcpy(slots + (size_t)i * GPU_PARAMS_SLOT, &s->dispatches[i].params, sizeof(gpu_params));
    }
    gpu_write(b->g, s->params, 0, slots, (uint64_t)s->n * GPU_PARAMS_SLOT);
    free(slots);
    return true;
}

/* [pool->n]; NULL without caches or memory. */
static gpu_cache_shape *shapes_of(const kv_pool *pool)
{
    gpu_cache_shape *shapes = pool ? malloc((pool->n + 1) * sizeof *shapes) : NULL;
    for (uint32_t i = 0; shapes && i < pool->n; i++) {
        const kv_cache *c = &pool->cache[i];
        shapes[i] = (gpu_cache_shape){.positions = c->ring ? c->ring : pool->positions,
                                      .piece_rows = c->piece_rows,
                                      .n_pieces = c->n_pieces,
                                      .ring = c->ring != 0};
    }
    return shapes;
}

bz_status gpu_expand(gpu_backend *b, bz_schedule *s, const kv_pool *pool, bz_error *err)
{
    bz_error local = {0};
    uint64_t scratch = 0;
    gpu_dispatch *dispatches = NULL;
    gpu_cache_shape *shapes = shapes_of(pool);
    if (pool && !shapes) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to schedule a plan.");
    }
    bz_status status = gpu_split_caches(&s->lowered, shapes, gpu_limits_of(b->g)->max_binding,
                                        &dispatches, &s->n, &scratch, &local);
    free(shapes);
    if (status == BZ_OK) {
        free(s->dispatches);
        s->dispatches = dispatches;
    }
    if (status != BZ_OK ||
        !grow(b, &b->arena, &b->arena_bytes, s->lowered.arena_bytes + scratch,
              bz_plan_shared_bytes(s->plan), &local) ||
        !grow(b, &b->side, &b->side_bytes, s->lowered.side_bytes, 0, &local) ||
        !write_params(b, s, &local)) {
        if (err) {
            *err = local;
        }
        return local.code;
    }
    return BZ_OK;
}

/* The streamed layer that a dispatch needs, 0 for none. Steps of one group never need two. */
static uint32_t streamed_layer(const gpu_backend *b, const bz_schedule *s, const gpu_dispatch *d)
{
    uint32_t layer = 0;
    for (uint32_t i = 0; i < d->steps; i++) {
        const bz_weight w = s->plan->steps[d->first_step + i].w[0];
        layer = w.id && b->weights.streamed[w.id - 1] ? b->weights.streamed[w.id - 1] : layer;
    }
    return layer;
}

static bz_status cut_segments(gpu_backend *b, bz_schedule *s, bz_error *err)
{
    if (!b->weights.n_streamed) {
        return BZ_OK;
    }
    gpu_segment *all = realloc(s->segments, (s->n + 1) * sizeof *all);
    if (!all) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to schedule a plan.");
    }
    s->segments = all;
    s->n_segments = 1;
    all[0] = (gpu_segment){0};
    for (uint32_t i = 0; i < s->n; i++) {
        const uint32_t layer = streamed_layer(b, s, &s->dispatches[i]);
        if (layer && layer != all[s->n_segments - 1].layer) {
            all[s->n_segments++] = (gpu_segment){.layer = layer, .first = i};
        }
        all[s->n_segments - 1].count++;
    }
    return BZ_OK;
}

static gpu_binding resolve(const gpu_backend *b, const gpu_dispatch_binding *d)
{
    return d->kind == GPU_BOUND_EMPTY   ? (gpu_binding){b->empty, 0, 0}
           : d->kind == GPU_BOUND_SLOTS ? (gpu_binding){b->slots, 0, 0}
                                        : d->at;
}

/* In the order that gpu_dispatch states. */
static uint32_t bindings_of(const gpu_backend *b, const bz_schedule *s, const kv_pool *pool,
                            uint32_t i, gpu_binding bind[GPU_MAX_BINDINGS])
{
    const gpu_dispatch *d = &s->dispatches[i];
    uint32_t n = 0;
    bind[n++] = (gpu_binding){s->params, (uint64_t)i * GPU_PARAMS_SLOT, sizeof(gpu_params)};
    bind[n++] = (gpu_binding){b->rows, 0, 0};
    bind[n++] = (gpu_binding){b->arena, 0, 0};
    if (d->cache) {
        const kv_cache *c = &pool->cache[d->cache - 1];
        bind[n++] = (gpu_binding){c->k[d->cache_piece], 0, 0};
        bind[n++] = (gpu_binding){c->v[d->cache_piece], 0, 0};
    } else if (d->weights.kind) {
        bind[n++] = resolve(b, &d->weights);
    }
    for (int e = 0; e < GPU_MAX_EXTRA_BINDINGS && d->extra[e].kind; e++) {
        bind[n++] = resolve(b, &d->extra[e]);
    }
    if (d->side) {
        bind[n++] = (gpu_binding){b->side, 0, 0};
    }
    return n;
}

bz_status gpu_record(gpu_backend *b, bz_schedule *s, const kv_pool *pool, bz_error *err)
{
    bz_status status = gpu_expand(b, s, pool, err);
    if (status == BZ_OK) {
        status = cut_segments(b, s, err);
    }
    if (status != BZ_OK) {
        return status;
    }
    if (s->list) {
        gpu_list_free(b->g, s->list);
    }
    s->list = gpu_list_new(b->g, err);
    if (!s->list) {
        return err ? err->code : BZ_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < s->n && status == BZ_OK; i++) {
        const gpu_dispatch *d = &s->dispatches[i];
        gpu_binding bind[GPU_MAX_BINDINGS];
        const uint32_t n = bindings_of(b, s, pool, i, bind);
        const gpu_pipeline pipeline =
            gpu_pipelines_get(b->pipelines, d->kernel, d->type, d->overrides, err);
        status = gpu_list_add(b->g, s->list, pipeline, bind, n, d->x, d->y, d->z ? d->z : 1, err);
    }
    return status == BZ_OK && gpu_chooses(s) ? gpu_choose_record(b, s, err) : status;
}
