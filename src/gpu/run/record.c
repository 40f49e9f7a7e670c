/* From a schedule to a list: what reads or writes a cache becomes one dispatch for each of the
 * cache's pieces, and everything gets its bindings. Done again when a buffer has been replaced. */
#include <stdlib.h>
#include <string.h>

#include "gpu/run/internal.h"

static uint32_t pieces_of(const bz_kv *kv, uint32_t cache)
{
    return cache && kv ? kv->cache[cache - 1].n_pieces : 1;
}

static void name_piece(dispatch *d, const bz_kv *kv, uint32_t piece, uint32_t splits,
                       uint32_t parts)
{
    const kv_cache *c = kv ? &kv->cache[d->cache - 1] : NULL;
    const bool ring = c && c->window;
    d->piece = piece;
    d->facts.ring = ring ? c->rows : 0;
    d->facts.first_row = c && !ring ? piece * c->piece_rows : 0;
    d->facts.row_count = c && !ring ? c->piece_rows : UINT32_MAX;
    d->facts.parts = parts;
    d->facts.first_part = piece * splits;
    d->z = d->split_rows ? splits : d->z;
}

/* What attention leaves for combine lies behind the activations. */
static uint64_t scratch_bytes(const step_facts *f, uint32_t rows, uint32_t parts)
{
    return 4ull * rows * f->heads * parts * (f->width + 4);
}

/* Splits of each piece of a cache: as built, or as many as there is room for. The same for attend
 * and for what gathers. */
static uint32_t splits_of(const gpu_backend *b, const bz_schedule *s, const dispatch *d,
                          uint32_t pieces)
{
    const uint64_t binding = gpu_limits_of(b->g)->max_binding,
                   left = binding > s->arena_bytes ? binding - s->arena_bytes : 0;
    uint32_t splits = d->splits;
    while (d->split_rows && splits > 1 &&
           scratch_bytes(&d->facts, d->split_rows, pieces * splits) > left) {
        splits--;
    }
    return splits;
}

/* The arena or the side buffer. */
static bool grow(gpu_backend *b, gpu_buffer *buffer, uint64_t *has, uint64_t bytes, bz_error *err)
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
        gpu_buffer_free(b->g, *buffer);
    }
    *buffer = fresh;
    *has = bytes;
    b->arena_generation++;
    return true;
}

/* A slot each: offsets of uniform bindings are multiples of 256. */
static bool write_facts(gpu_backend *b, bz_schedule *s, bz_error *err)
{
    uint8_t *slots = calloc(s->n ? s->n : 1, GPU_SLOT);
    if (!slots) {
        bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to schedule a plan.");
        return false;
    }
    if (s->facts_room < s->n) {
        gpu_buffer fresh = gpu_buffer_new(b->g, (uint64_t)s->n * GPU_SLOT, GPU_UNIFORM, err);
        if (!fresh) {
            free(slots);
            return false;
        }
        if (s->facts) {
            gpu_buffer_free(b->g, s->facts);
        }
        s->facts = fresh;
        s->facts_room = s->n;
    }
    for (uint32_t i = 0; i < s->n; i++) {
        memcpy(slots + (size_t)i * GPU_SLOT, &s->dispatches[i].facts, sizeof(step_facts));
    }
    gpu_write(b->g, s->facts, 0, slots, (uint64_t)s->n * GPU_SLOT);
    free(slots);
    return true;
}

bz_status gpu_expand(gpu_backend *b, bz_schedule *s, const bz_kv *kv, bz_error *err)
{
    bz_error local = {0};
    size_t most = 0;
    uint64_t scratch = s->scratch;
    for (uint32_t i = 0; i < s->n_plain; i++) {
        most += pieces_of(kv, s->plain[i].cache);
    }
    dispatch *all = realloc(s->dispatches, (most ? most : 1) * sizeof *all);
    if (!all) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to schedule a plan.");
    }
    s->dispatches = all;
    s->n = 0;
    for (uint32_t i = 0; i < s->n_plain; i++) {
        const dispatch *d = &s->plain[i];
        const uint32_t pieces = pieces_of(kv, d->cache ? d->cache : d->gathers);
        const uint32_t splits = splits_of(b, s, d, pieces), parts = pieces * splits;
        if (d->gathers && parts == 1) {
            continue; /* attend wrote the result itself */
        }
        for (uint32_t p = 0; p < (d->cache ? pieces : 1); p++) {
            dispatch *e = &s->dispatches[s->n++];
            *e = *d;
            if (d->cache) {
                name_piece(e, kv, p, splits, parts);
            } else if (d->gathers) {
                e->facts.parts = parts;
                const uint64_t bytes = scratch_bytes(&d->facts, d->y, parts);
                scratch = bytes > scratch ? bytes : scratch;
            }
        }
    }
    if (!grow(b, &b->arena, &b->arena_bytes, s->arena_bytes + scratch, &local) ||
        !grow(b, &b->side, &b->side_bytes, s->side_bytes, &local) || !write_facts(b, s, &local)) {
        if (err) {
            *err = local;
        }
        return local.code;
    }
    return BZ_OK;
}

/* Which streamed layer a dispatch needs, 0 for none. Steps done together never need two. */
static uint32_t streamed_layer(const gpu_backend *b, const bz_schedule *s, const dispatch *d)
{
    uint32_t layer = 0;
    for (uint32_t i = 0; i < d->steps; i++) {
        const bz_weight w = s->plan->steps[d->first_step + i].w[0];
        layer = w.id && b->weights.streamed[w.id - 1] ? b->weights.streamed[w.id - 1] : layer;
    }
    return layer;
}

static bz_status cut_stretches(gpu_backend *b, bz_schedule *s, bz_error *err)
{
    gpu_stretch *all =
        b->weights.n_streamed ? realloc(s->stretches, (s->n + 1) * sizeof *all) : NULL;
    if (!b->weights.n_streamed) {
        return BZ_OK;
    }
    if (!all) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to schedule a plan.");
    }
    s->stretches = all;
    s->n_stretches = 1;
    all[0] = (gpu_stretch){0};
    for (uint32_t i = 0; i < s->n; i++) {
        const uint32_t layer = streamed_layer(b, s, &s->dispatches[i]);
        if (layer && layer != all[s->n_stretches - 1].layer) {
            all[s->n_stretches++] = (gpu_stretch){.layer = layer, .first = i};
        }
        all[s->n_stretches - 1].count++;
    }
    return BZ_OK;
}

bz_status gpu_record(gpu_backend *b, bz_schedule *s, const bz_kv *kv, bz_error *err)
{
    bz_status status = gpu_expand(b, s, kv, err);
    if (status == BZ_OK) {
        status = cut_stretches(b, s, err);
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
        const dispatch *d = &s->dispatches[i];
        gpu_binding bind[GPU_MAX_BINDINGS] = {
            {s->facts, (uint64_t)i * GPU_SLOT, sizeof(step_facts)},
            {b->rows, 0, 0},
            {b->arena, 0, 0}};
        uint32_t n = 3;
        if (d->cache) {
            const kv_cache *c = &kv->cache[d->cache - 1];
            bind[n++] = (gpu_binding){c->k[d->piece], 0, 0};
            bind[n++] = (gpu_binding){c->v[d->piece], 0, 0};
        } else if (d->weights.buffer) {
            bind[n++] = d->weights;
        }
        for (int e = 0; e < 3 && d->extra[e].buffer; e++) {
            bind[n++] = d->extra[e];
        }
        if (d->side) {
            bind[n++] = (gpu_binding){b->side, 0, 0};
        }
        status =
            gpu_list_add(b->g, s->list, d->pipeline, bind, n, d->x, d->y, d->z ? d->z : 1, err);
    }
    return status == BZ_OK && gpu_chooses(s) ? gpu_choose_record(b, s, err) : status;
}
