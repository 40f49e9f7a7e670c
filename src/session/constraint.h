/* A grammar for an answer: which tokens may come next, where in the answer it holds. */
#ifndef BZ_CONSTRAINT_H
#define BZ_CONSTRAINT_H

#include "grammar/matcher.h"
#include "session/model.h"

typedef struct bz_constraint bz_constraint;

/* Holds the grammar. The model's vocabulary is made with its first constraint. */
bz_status bz_constraint_new(bz_constraint **out, const bz_model *m, bz_grammar *g, bz_error *err);
void bz_constraint_free(bz_constraint *c);

/* *bits: [vocabulary] the tokens that may come next, end tokens included; NULL: all. Valid until
 * the next call. */
bz_status bz_constraint_allowed(bz_constraint *c, const uint64_t **bits, uint32_t *n,
                                bz_error *err);
/* The token that must come next; -1: there are several. Texts that the grammar prescribes are cut
 * into tokens as the tokenizer cuts them, and the last of these is left to be chosen, as it may go
 * on with what follows. */
int32_t bz_constraint_forced(bz_constraint *c);
/* The allowed set of one token. */
const uint64_t *bz_constraint_only(bz_constraint *c, int32_t id);
/* The token that was chosen, unless it ended the answer. Fails if it was not allowed. */
bz_status bz_constraint_take(bz_constraint *c, int32_t id, bz_error *err);

void bz_model_free_vocabulary(bz_model *m);
/* Where a model is opened. */
bz_status bz_model_new_vocabulary(bz_model *m, bz_error *err);

#endif
