/* Bias and penalties as a list of edited tokens, with an index by token id. */
#include "sample/edits.h"

#include <math.h>
#include <stdlib.h>

enum { DEFAULT_WINDOW = 64 };

void bz_edits_free(bz_edits *e)
{
    free(e->list);
    free(e->slot);
    *e = (bz_edits){0};
}

/* The entry of a token, added if missing; the list has capacity. */
static bz_edit *entry(bz_edits *e, int32_t id)
{
    uint32_t *slot = &e->slot[id];
    if (!*slot) {
        e->list[e->n] = (bz_edit){.id = id};
        *slot = ++e->n;
    }
    return &e->list[*slot - 1];
}

/* Removes the entries from index `keep` on. */
static void drop(bz_edits *e, uint32_t keep)
{
    while (e->n > keep) {
        e->slot[e->list[--e->n].id] = 0;
    }
}

static bz_status reserve(bz_edits *e, size_t capacity, bz_error *err)
{
    if (!e->slot) {
        e->slot = calloc(e->vocab, sizeof *e->slot);
    }
    if (capacity > e->capacity) {
        bz_edit *more = realloc(e->list, capacity * sizeof *more);
        if (more) {
            e->list = more;
            e->capacity = (uint32_t)capacity;
        }
    }
    if (!e->slot || capacity > e->capacity) {
        return bz_fail(err, BZ_OUT_OF_MEMORY,
                       "There is not enough memory for bias and penalties of %zu tokens.",
                       capacity);
    }
    return BZ_OK;
}

bz_status bz_edits_begin(bz_edits *e, uint32_t vocab, uint32_t context, const bz_sampling *o,
                         const int32_t *forbidden, uint32_t n_forbidden, bz_error *err)
{
    drop(e, 0);
    e->n_fixed = 0;
    e->vocab = vocab;
    e->repetition = o->repetition > 0 ? o->repetition : 1;
    e->presence = o->presence;
    e->frequency = o->frequency;
    e->window = o->window < 0 ? context : o->window > 0 ? (uint32_t)o->window : DEFAULT_WINDOW;
    e->window = e->window < context ? e->window : context;
    if (e->repetition == 1 && e->presence == 0 && e->frequency == 0) {
        e->window = 0;
    }
    size_t capacity = o->n_bias + n_forbidden + e->window;
    capacity = capacity < vocab ? capacity : vocab;
    if (capacity == 0) {
        return BZ_OK;
    }
    bz_status status = reserve(e, capacity, err);
    if (status != BZ_OK) {
        e->window = 0;
        return status;
    }
    for (size_t i = 0; i < o->n_bias; i++) {
        entry(e, o->bias[i].token)->bias += o->bias[i].bias;
    }
    for (uint32_t i = 0; i < n_forbidden; i++) {
        entry(e, forbidden[i])->bias = -INFINITY;
    }
    e->n_fixed = e->n;
    return BZ_OK;
}

void bz_edits_see(bz_edits *e, const int32_t *tokens, uint32_t n)
{
    if (!e->window) {
        return;
    }
    drop(e, e->n_fixed);
    for (uint32_t i = 0; i < e->n_fixed; i++) {
        e->list[i].seen = 0;
    }
    for (uint32_t i = n > e->window ? n - e->window : 0; i < n; i++) {
        if (tokens[i] >= 0 && (uint32_t)tokens[i] < e->vocab) { /* soft tokens have none */
            entry(e, tokens[i])->seen++;
        }
    }
}

void bz_edits_apply(const bz_edits *e, float *row)
{
    for (uint32_t i = 0; i < e->n; i++) {
        const bz_edit *edit = &e->list[i];
        float x = row[edit->id] + edit->bias;
        if (edit->seen) {
            x = x > 0 ? x / e->repetition : x * e->repetition;
            x -= (float)edit->seen * e->frequency + e->presence;
        }
        row[edit->id] = x;
    }
}
