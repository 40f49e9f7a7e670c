/* Weights of adapters beside those of the model: one table for the plans of a session. */
#include <stdlib.h>
#include <string.h>

#include "gpu/run/backend.h"
#include "gpu/run/internal.h"

static void append(gpu_weight_map *to, uint32_t *streamed, uint32_t at, const gpu_weights *from)
{
    uint32_t pieces = to->first_piece[at];
    for (uint32_t i = 0; i < from->map.table->n; i++) {
        const uint32_t first = from->map.first_piece[i], end = from->map.first_piece[i + 1];
        memcpy(to->pieces + pieces, from->map.pieces + first, (end - first) * sizeof *to->pieces);
        pieces += end - first;
        to->first_piece[at + i + 1] = pieces;
        streamed[at + i] = from->streamed[i];
    }
}

static uint32_t pieces_of(const gpu_weights *w)
{
    return w->map.first_piece[w->map.table->n];
}

bz_status bz_gpu_add_weights(bz_backend *backend, const bz_weights *table,
                             const uint8_t *const *weight_bytes, bz_gpu_model *more, bz_error *err)
{
    gpu_backend *b = (gpu_backend *)(void *)backend;
    gpu_added_weights *a = &b->added;
    const size_t pieces = pieces_of(&b->model->weights) + (size_t)pieces_of(&more->weights);
    gpu_weight_map map = b->weights.map;
    map.table = table;
    map.pieces = a->pieces = malloc((pieces + 1) * sizeof *a->pieces);
    map.first_piece = a->first_piece = calloc(table->n + (size_t)1, sizeof *a->first_piece);
    a->streamed = calloc(table->n + (size_t)1, sizeof *a->streamed);
    if (!a->pieces || !a->first_piece || !a->streamed) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the table of weights.");
    }
    append(&map, a->streamed, 0, &b->model->weights);
    append(&map, a->streamed, b->model->weights.map.table->n, &more->weights);
    bz_gpu_model_hold(more);
    a->more = more;
    b->weights.map = map;
    b->weights.streamed = a->streamed;
    b->weight_bytes = weight_bytes;
    return BZ_OK;
}

void gpu_free_added_weights(gpu_added_weights *a)
{
    if (a->more) {
        bz_gpu_model_drop(a->more);
    }
    free(a->pieces);
    free(a->first_piece);
    free(a->streamed);
    *a = (gpu_added_weights){0};
}
