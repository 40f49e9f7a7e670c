/* Runs a grammar over tokens: which tokens may come next, and what is forced.
 *
 * The state of a text is a set of configurations (a state of the automata and a stack). Sets and
 * stacks have numbers, so a set of tokens that was computed for a state is found again by number.
 *
 * The tokens that one configuration allows are those that stay in its rule and the rules it calls,
 * whatever its stack is (base.h: computed once per state of the automata), and those that leave the
 * rule, whose remaining bytes are tried on the stack. For the rules of JSON's strings and numbers
 * the former are kept with the vocabulary. */
#ifndef BZ_GRAMMAR_MATCHER_H
#define BZ_GRAMMAR_MATCHER_H

#include "grammar/grammar.h"
#include "grammar/vocabulary.h"

typedef struct bz_matcher bz_matcher;

typedef struct bz_token_mask {
    const uint64_t *bits; /* [(n_tokens + 63) / 64] by token; valid until the next call */
    uint32_t n;           /* tokens allowed */
    bool can_end;         /* the text may end here: no part of `bits` */
} bz_token_mask;

static inline bool bz_mask_has(const bz_token_mask *m, int32_t id)
{
    return m->bits[(uint32_t)id >> 6] >> ((uint32_t)id & 63) & 1;
}

/* Holds the grammar; the vocabulary must outlive it. At the beginning of a text. */
bz_status bz_matcher_new(bz_matcher **out, bz_grammar *g, bz_vocabulary *v, bz_error *err);
void bz_matcher_free(bz_matcher *m);
void bz_matcher_restart(bz_matcher *m);

/* Fails without memory, and for a grammar that is too ambiguous; then the matcher is of no more
 * use. */
bz_status bz_matcher_mask(bz_matcher *m, bz_token_mask *out, bz_error *err);
/* The error after which it is of no more use; OK: there was none. */
bz_status bz_matcher_check(const bz_matcher *m, bz_error *err);
/* False: no text of the grammar continues so, or the matcher failed; the state stays the same. */
bool bz_matcher_take(bz_matcher *m, const char *bytes, size_t n);
bool bz_matcher_take_token(bz_matcher *m, int32_t id);
bool bz_matcher_can_end(const bz_matcher *m);
/* Writes the bytes that every continuation begins with, at most `cap`, and returns their number. */
size_t bz_matcher_forced(bz_matcher *m, char *out, size_t cap);

/* For tests: forgets everything that was computed but the state. */
bool bz_matcher_compact(bz_matcher *m);

#endif
