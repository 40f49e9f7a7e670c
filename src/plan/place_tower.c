/* Arena offsets of a tower's tensors. They have few sizes, some four times as wide as others; in
 * the order of first writes the wide ones would find only gaps that are too small. So the largest
 * are placed first, each at the lowest offset that is free during its lifetime. */
#include <stdlib.h>
#include <string.h>

#include "plan/recording.h"

typedef struct piece {
    uint32_t id;
    size_t first, last; /* groups of steps in which it is live */
    size_t bytes, offset;
} piece;

/* Elementwise steps may write over their input if no later step reads it: each value is read
 * before it is written, also where several such steps are fused. */
static bool in_place(const bz_plan *p, size_t s)
{
    const bz_step *step = &p->steps[s];
    const bz_tensor_info *in = &p->tensors[step->in[0].id];
    const bool elementwise = step->op == BZ_OP_CLAMP || step->op == BZ_OP_SILU ||
                             step->op == BZ_OP_RELU || (step->op == BZ_OP_GEGLU && step->in[1].id);
    return elementwise && in->root == step->in[0].id && in->last == (int32_t)s;
}

static int largest_first(const void *a, const void *b)
{
    const piece *x = *(const piece *const *)a, *y = *(const piece *const *)b;
    return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1)
           : x->id < y->id      ? -1
                                : x->id > y->id;
}

/* Gives x the lowest offset that is free during its lifetime; `placed` is sorted by offset. */
static void put(piece *x, piece **placed, size_t *n)
{
    size_t at = 0, slot = 0;
    for (; slot < *n; slot++) {
        const piece *o = placed[slot];
        if (o->last < x->first || x->last < o->first) {
            continue;
        }
        if (at + x->bytes <= o->offset) {
            break;
        }
        at = o->offset + o->bytes > at ? o->offset + o->bytes : at;
    }
    x->offset = at;
    for (slot = 0; slot < *n && placed[slot]->offset <= at; slot++) {
    }
    memmove(placed + slot + 1, placed + slot, (*n - slot) * sizeof *placed);
    placed[slot] = x;
    (*n)++;
}

bz_status bz_plan_place_tower(const bz_plan *p, const uint32_t *group, size_t *offset,
                              size_t *arena_bytes, bz_error *err)
{
    piece *all = calloc(p->n_tensors, sizeof *all);
    piece **order = malloc(2 * p->n_tensors * sizeof *order), **placed = order + p->n_tensors;
    uint32_t *at = calloc(p->n_tensors, sizeof *at); /* the tensor whose memory it uses */
    if (!all || !order || !at) {
        free(all);
        free(order);
        free(at);
        return bz_fail(err, BZ_OUT_OF_MEMORY,
                       "There is not enough memory to place a plan's tensors.");
    }
    size_t n = 0, n_placed = 0;
    for (size_t s = 0; s < p->n_steps; s++) {
        const size_t now = group ? group[s] : s;
        for (size_t o = 0; o < 2; o++) {
            const uint32_t id = p->steps[s].out[o].id;
            if (id == 0 || p->tensors[id].first != (int32_t)s) {
                continue;
            }
            const size_t end = (size_t)p->tensors[id].last;
            const size_t last = end >= p->n_steps ? SIZE_MAX
                                : group           ? group[end]
                                                  : end; /* the output outlives all */
            at[id] = id;
            if (o == 0 && in_place(p, s)) {
                at[id] = at[p->steps[s].in[0].id];
                piece *root = &all[at[id]];
                root->last = last > root->last ? last : root->last;
                continue;
            }
            all[id] = (piece){.id = id, .first = now, .last = last, .bytes = p->tensors[id].bytes};
            order[n++] = &all[id];
        }
    }
    qsort(order, n, sizeof *order, largest_first);
    *arena_bytes = 0;
    for (size_t i = 0; i < n && *arena_bytes <= BZ_MAX_ARENA_BYTES; i++) {
        put(order[i], placed, &n_placed);
        const size_t end = order[i]->offset + order[i]->bytes;
        *arena_bytes = end > *arena_bytes ? end : *arena_bytes;
    }
    for (size_t i = 0; i < p->n_tensors; i++) {
        offset[i] = all[at[p->tensors[i].root]].offset; /* a view has its root's offset */
    }
    free(all);
    free(order);
    free(at);
    return *arena_bytes <= BZ_MAX_ARENA_BYTES ? BZ_OK : bz_plan_too_large(p, err);
}
