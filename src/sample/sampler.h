/* From a row of logits to a token, in llama.cpp's order, so that the same options mean the same:
 * bias and forbidden tokens, penalties, top-k, top-p, min-p, temperature, draw.
 *
 * In two stages, so that a GPU can do the first. Stage 1 reads the whole row and leaves a list
 * of the best candidates and the sum of all exponentials; stage 2 needs nothing else, nearly
 * always. Where it does, it asks for the row. Its answer never depends on how long the
 * list was: the list is a beginning of the ranking of the whole row, and sums are made in the
 * order of the ranking.
 */
#ifndef BZ_SAMPLE_SAMPLER_H
#define BZ_SAMPLE_SAMPLER_H

#include "base/error.h"
#include "sample/shortlist.h"

typedef struct bz_sampler bz_sampler;

/* `forbidden` ids are never chosen, whatever the options say; they are copied. */
bz_status bz_sampler_new(bz_sampler **out, uint32_t vocab, uint32_t context,
                         const int32_t *forbidden, uint32_t n_forbidden, bz_error *err);
void bz_sampler_free(bz_sampler *s);

/* Sets the options for the rows to come, copied; fields that are zero get the defaults in
 * bezel.h. All memory is made here, none per token. Log-probabilities, of the chosen token and
 * of `top` others, are those of the row as the model gave it, before bias, penalties and
 * temperature. On error the options are as before or undefined; begin again. */
bz_status bz_sampler_begin(bz_sampler *s, const bz_sampling *o, bool log_probs, uint32_t top,
                           bz_error *err);

/* The tokens that the coming row follows: what penalties look at. Call before stage 1. */
void bz_sampler_see(bz_sampler *s, const int32_t *tokens, uint32_t n);
const bz_edits *bz_sampler_edits(const bz_sampler *s);

/* ---- stage 1 --------------------------------------------------------------------------- */

/* What a device shall do of it. Where stage 2 would ask for the row every time, a list is of no
 * use. Both hold until the next begin, but for penalties: their edits are those of the last see. */
bz_topk_request bz_sampler_topk_request(const bz_sampler *s);
bool bz_sampler_needs_rows(const bz_sampler *s);

/* Fails as bz_shortlist_check does. */
bz_status bz_sampler_shortlist(bz_sampler *s, const float *row, bz_shortlist *out, bz_error *err);

/* ---- stage 2 --------------------------------------------------------------------------- */

typedef struct bz_choice {
    int32_t id;
    float log_prob;
    const bz_token_prob *top; /* [n_top] best first, valid until the next choice */
    uint32_t n_top;
} bz_choice;

/* Chooses with the uniform number u in [0, 1). False: the list is too short for this one; call
 * again with the model's row. */
bool bz_sampler_choose(bz_sampler *s, const bz_shortlist *list, const float *row, double u,
                       bz_choice *out);

#endif
