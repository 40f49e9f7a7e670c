/* From a row of logits to a token, in llama.cpp's order, so that the same options mean the same:
 * bias and forbidden tokens, penalties, top-k, top-p, min-p, temperature, draw.
 *
 * There are two stages, so that a GPU can do the first. Stage 1 reads the whole row and produces a
 * shortlist of the best candidates and the sum of all exponentials. Stage 2 nearly always needs
 * only that; otherwise it requests the row. Its result never depends on the length of the list:
 * the list is a prefix of the ranking of the whole row, and sums are computed in that order.
 */
#ifndef BZ_SAMPLE_SAMPLER_H
#define BZ_SAMPLE_SAMPLER_H

#include "base/error.h"
#include "sample/shortlist.h"

typedef struct bz_sampler bz_sampler;

/* forbidden: [n_forbidden] ids that are never sampled, whatever the options are; copied. */
bz_status bz_sampler_new(bz_sampler **out, uint32_t vocab, uint32_t context,
                         const int32_t *forbidden, uint32_t n_forbidden, bz_error *err);
void bz_sampler_free(bz_sampler *s);

/* Sets the options for the following rows, copied; zero fields get the defaults in bezel.h. All
 * memory is allocated here, none per token. Log-probabilities, of the sampled token and of the
 * `top` best, are those of the model's row, before bias, penalties and temperature. After an error
 * call it again before sampling. */
bz_status bz_sampler_begin(bz_sampler *s, const bz_sampling *o, bool log_probs, uint32_t top,
                           bz_error *err);

/* After begin: a set of allowed tokens is going to be given for every row. */
bz_status bz_sampler_begin_masks(bz_sampler *s, bz_error *err);
/* The tokens that may follow, by bits [vocabulary], which must stay until the choice; n of them.
 * Call before either stage. A device does not know them: it ranks all tokens, and stage 2 takes
 * those that are allowed from its list. */
void bz_sampler_allow(bz_sampler *s, const uint64_t *bits, uint32_t n);

/* The tokens before the next row, for the penalties. Call before stage 1. */
void bz_sampler_see(bz_sampler *s, const int32_t *tokens, uint32_t n);
const bz_edits *bz_sampler_edits(const bz_sampler *s);

/* ---- stage 1 --------------------------------------------------------------------------- */

/* topk_request: what a device must compute. needs_rows: stage 2 would request every row, so a
 * shortlist is of no use. Both are valid until the next begin; the request's edits are those of
 * the last see. */
bz_topk_request bz_sampler_topk_request(const bz_sampler *s);
bool bz_sampler_needs_rows(const bz_sampler *s);

/* Fails as bz_shortlist_check does. */
bz_status bz_sampler_shortlist(bz_sampler *s, const float *row, bz_shortlist *out, bz_error *err);

/* ---- stage 2 --------------------------------------------------------------------------- */

typedef struct bz_choice {
    int32_t id;
    float log_prob;
    const bz_token_prob *top; /* [n_top] best first; valid until the next call */
    uint32_t n_top;
} bz_choice;

/* Samples with the uniform random number u in [0, 1). row: [vocabulary] or NULL. False: the list is
 * too short; call again with the model's row. */
bool bz_sampler_choose(bz_sampler *s, const bz_shortlist *list, const float *row, double u,
                       bz_choice *out);

#endif
