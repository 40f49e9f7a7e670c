/* A lowered list for caches of known size: dispatches that read or write a cache become one for
 * each of its pieces. Called when a list is recorded, again whenever a cache has grown. */
#include <stdlib.h>

#include "gpu/lower/fuse.h"

uint32_t gpu_cache_head_bytes(bz_cache_type type, uint32_t n)
{
    const uint32_t vectors = (n + 7) / 8, blocks = (n + BZ_CACHE_BLOCK - 1) / BZ_CACHE_BLOCK;
    switch (type) {
    case BZ_CACHE_Q8: return 8 * (vectors + (blocks + 3) / 4);
    case BZ_CACHE_Q4: return 4 * (vectors + (blocks + 1) / 2);
    default: return bz_cache_bytes(type, n);
    }
}

static uint32_t pieces_of(const gpu_cache_shape *caches, uint32_t cache)
{
    return cache && caches ? caches[cache - 1].n_pieces : 1;
}

enum {
    MIN_SPLITS = 2,         /* attend_split never writes the result itself */
    MAX_READER_PARTS = 8,   /* that a product combines; more have a dispatch of their own */
    SHORT_RANGE = 64,       /* positions of a split as long as a product combines them, */
    LONG_RANGE = 256,       /* and beyond */
    MAX_SHORT = 1024,       /* positions that a product combines the parts of */
    MAX_SPLIT_GROUPS = 512, /* workgroups of one row, */
    MANY_ROWS_GROUPS = 1024 /* of all rows of a pass of many sequences */
};

/* Splits of attend_split, by the positions that a row may see: as measured on an H200. */
static uint32_t splits_by_length(const gpu_split *s, const gpu_cache_shape *c)
{
    if (!c) {
        return MAX_READER_PARTS;
    }
    const uint32_t rows = c->positions < c->piece_rows ? c->positions : c->piece_rows,
                   visible = s->window && s->window < rows ? s->window : rows;
    const bool is_short = visible <= MAX_SHORT;
    const uint32_t range = is_short ? SHORT_RANGE : LONG_RANGE,
                   wanted = (visible + range - 1) / range;
    const uint32_t most = s->rows > GPU_MAX_VECTOR_ROWS ? MANY_ROWS_GROUPS / (s->heads * s->rows)
                          : is_short                    ? MAX_READER_PARTS
                                                        : MAX_SPLIT_GROUPS / s->heads;
    const uint32_t splits = wanted < most ? wanted : most;
    return splits > MIN_SPLITS ? splits : MIN_SPLITS;
}

/* Partial results that attention leaves for the combining dispatch, after the arena. */
static uint64_t partial_bytes(const gpu_split *s, uint32_t rows, uint32_t parts)
{
    return 4ull * rows * s->heads * parts * (s->width + 4);
}

/* Splits of each piece: as lowered or by length, or as many as fit into the binding. */
static uint32_t splits_of(const gpu_lowered *l, uint64_t max_binding, const gpu_split *s,
                          const gpu_cache_shape *c, uint32_t pieces)
{
    const uint64_t left = max_binding > l->arena_bytes ? max_binding - l->arena_bytes : 0;
    const uint32_t least = s->splits ? 1 : MIN_SPLITS;
    uint32_t splits = s->splits ? s->splits : s->heads ? splits_by_length(s, c) : 1;
    while (s->rows && splits > least && partial_bytes(s, s->rows, pieces * splits) > left) {
        splits--;
    }
    return splits;
}

static void set_piece(gpu_dispatch *d, const gpu_cache_shape *c, uint32_t piece, uint32_t splits,
                      uint32_t parts)
{
    d->cache_piece = piece;
    gpu_attention_params *p = &d->params.attention;
    p->ring = c && c->ring ? c->positions : 0;
    p->first_row = c ? piece * c->piece_rows : 0;
    p->row_count = c ? c->piece_rows : UINT32_MAX;
    p->parts = parts;
    p->first_part = piece * splits;
    if (d->split.heads && !d->split.splits) {
        p->splits = splits;
        d->x = d->split.heads * splits;
    } else if (d->split.rows) {
        d->z = splits;
    }
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
        const uint32_t cache = d->cache ? d->cache : d->combines;
        const uint32_t pieces = pieces_of(caches, cache);
        const uint32_t splits = splits_of(l, max_binding, &d->split,
                                          caches && cache ? &caches[cache - 1] : NULL, pieces);
        const uint32_t parts = pieces * splits;
        const bool by_reader = d->split.reader_combines && parts <= MAX_READER_PARTS;
        if (d->kernel == GPU_COMBINE) {
            const uint64_t bytes = partial_bytes(&d->split, d->y, parts);
            *scratch_bytes = bytes > *scratch_bytes ? bytes : *scratch_bytes;
        }
        if (d->kernel == GPU_COMBINE && (parts == 1 || by_reader)) {
            continue; /* attention wrote the result itself, or the product combines the parts */
        }
        for (uint32_t p = 0; p < (d->cache ? pieces : 1); p++) {
            gpu_dispatch *e = &list[(*n)++];
            *e = *d;
            if (d->cache) {
                set_piece(e, caches ? &caches[d->cache - 1] : NULL, p, splits, parts);
            } else if (d->kernel == GPU_COMBINE) {
                e->params.attention.parts = parts;
            } else if (d->combines) {
                e->params.fused_product.parts = by_reader ? parts : 0;
            }
        }
    }
    return BZ_OK;
}
