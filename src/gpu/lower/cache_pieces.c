/* A lowered list for caches of known size: dispatches that read or write a cache become one for
 * each of its pieces. Called when a list is recorded, again whenever a cache has grown. */
#include <stdlib.h>

#include "gpu/lower/lower.h"

static uint32_t pieces_of(const gpu_cache_shape *caches, uint32_t cache)
{
    return cache && caches ? caches[cache - 1].n_pieces : 1;
}

/* Partial results that attention leaves for the combining dispatch, after the arena. */
static uint64_t partial_bytes(const gpu_attention_params *p, uint32_t rows, uint32_t parts)
{
    return 4ull * rows * p->heads * parts * (p->width + 4);
}

/* Splits of each piece: as lowered, or as many as fit into the binding. The same for attention and
 * for the dispatch that combines its results. */
static uint32_t splits_of(const gpu_lowered *l, uint64_t max_binding, const gpu_dispatch *d,
                          uint32_t pieces)
{
    const uint64_t left = max_binding > l->arena_bytes ? max_binding - l->arena_bytes : 0;
    uint32_t splits = d->splits;
    while (d->split_rows && splits > 1 &&
           partial_bytes(&d->params.attention, d->split_rows, pieces * splits) > left) {
        splits--;
    }
    return splits;
}

static void set_piece(gpu_dispatch *d, const gpu_cache_shape *c, uint32_t piece, uint32_t splits,
                      uint32_t parts)
{
    const bool ring = c && c->ring;
    d->cache_piece = piece;
    gpu_attention_params *p = &d->params.attention;
    p->ring = ring ? c->rows : 0;
    p->first_row = c && !ring ? piece * c->piece_rows : 0;
    p->row_count = c && !ring ? c->piece_rows : UINT32_MAX;
    p->parts = parts;
    p->first_part = piece * splits;
    d->z = d->split_rows ? splits : d->z;
}

bz_status gpu_split_caches(const gpu_lowered *l, const gpu_cache_shape *caches,
                           uint64_t max_binding, gpu_dispatch **out, uint32_t *n,
                           uint64_t *scratch_bytes, bz_error *err)
{
    size_t capacity = 1;
    for (uint32_t i = 0; i < l->n; i++) {
        capacity += pieces_of(caches, l->dispatches[i].cache);
    }
    gpu_dispatch *list = malloc(capacity * sizeof *list);
    if (!list) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to schedule a plan.");
    }
    *out = list;
    *n = 0;
    *scratch_bytes = l->scratch_bytes;
    for (uint32_t i = 0; i < l->n; i++) {
        const gpu_dispatch *d = &l->dispatches[i];
        const uint32_t pieces = pieces_of(caches, d->cache ? d->cache : d->combines);
        const uint32_t splits = splits_of(l, max_binding, d, pieces), parts = pieces * splits;
        if (d->combines && parts == 1) {
            continue; /* attention wrote the result itself */
        }
        for (uint32_t p = 0; p < (d->cache ? pieces : 1); p++) {
            gpu_dispatch *e = &list[(*n)++];
            *e = *d;
            if (d->cache) {
                set_piece(e, caches ? &caches[d->cache - 1] : NULL, p, splits, parts);
            } else if (d->combines) {
                e->params.attention.parts = parts;
                const uint64_t bytes = partial_bytes(&d->params.attention, d->y, parts);
                *scratch_bytes = bytes > *scratch_bytes ? bytes : *scratch_bytes;
            }
        }
    }
    return BZ_OK;
}
