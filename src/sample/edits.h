/* Changes to the logits of single tokens before sampling: bias, then penalties for recent tokens.
 * A short list, so that it can be uploaded to a GPU. */
#ifndef BZ_SAMPLE_EDITS_H
#define BZ_SAMPLE_EDITS_H

#include "base/error.h"

typedef struct bz_edit {
    int32_t id;
    uint32_t seen; /* count among the last `window` tokens */
    float bias;    /* added first; -inf: the token is never sampled */
} bz_edit;

typedef struct bz_edits {
    bz_edit *list; /* unique ids; the first n_fixed apply to every row */
    uint32_t n, n_fixed;

    float repetition, presence, frequency;
    uint32_t window; /* recent tokens that penalties apply to; 0: no penalties */

    /* private */
    uint32_t capacity;
    uint32_t *slot; /* [vocabulary] 1 + index in the list; 0: not there */
    uint32_t vocab;
} bz_edits;

/* Sets bias and penalties from `o` (checked by the caller) and ids that are never sampled. The
 * window is at most `context`. Buffers are reused from call to call. */
bz_status bz_edits_begin(bz_edits *e, uint32_t vocab, uint32_t context, const bz_sampling *o,
                         const int32_t *forbidden, uint32_t n_forbidden, bz_error *err);
void bz_edits_free(bz_edits *e);

/* Builds the list for the row that follows these tokens. */
void bz_edits_see(bz_edits *e, const int32_t *tokens, uint32_t n);
void bz_edits_apply(const bz_edits *e, float *row);

#endif
