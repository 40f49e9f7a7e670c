/* What is done to the logits of single tokens before a token is chosen: bias, then penalties for
 * tokens seen lately. A short list, so that a GPU can be given it too. */
#ifndef BZ_SAMPLE_EDITS_H
#define BZ_SAMPLE_EDITS_H

#include "base/error.h"

typedef struct bz_edit {
    int32_t id;
    uint32_t seen; /* times among the last tokens */
    float bias;    /* added first; -inf: the token is never chosen */
} bz_edit;

typedef struct bz_edits {
    bz_edit *list; /* no id twice; the first n_fixed hold for every row */
    uint32_t n, n_fixed;

    float repetition, presence, frequency;
    uint32_t window; /* tokens looked back at; 0: no penalties */

    /* private */
    uint32_t room;
    uint32_t *slot; /* [vocabulary] 1 + index in the list; 0: not there */
    uint32_t vocab;
} bz_edits;

/* Takes bias and penalties of `o`, checked by the caller, and ids that are never chosen. At most
 * `context` tokens will be looked back at. Buffers are kept from one call to the next. */
bz_status bz_edits_begin(bz_edits *e, uint32_t vocab, uint32_t context, const bz_sampling *o,
                         const int32_t *forbidden, uint32_t n_forbidden, bz_error *err);
void bz_edits_free(bz_edits *e);

/* Makes the list for the row that follows these tokens. */
void bz_edits_see(bz_edits *e, const int32_t *tokens, uint32_t n);
void bz_edits_apply(const bz_edits *e, float *row);

#endif
