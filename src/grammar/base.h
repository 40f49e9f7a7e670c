/* What one state of the automata allows, whatever is below it on the stack. Used by matcher.c.
 *
 * Tokens are in one of two groups: those that stay in the state's rule and the rules it calls, and
 * those that leave the rule before their end, for which the bytes after it must be tried on the
 * stack. In the body of a loop the rounds of the loop belong to the rule; a token then needs a
 * number of further rounds, which the loop may or may not have left. */
#ifndef BZ_GRAMMAR_BASE_H
#define BZ_GRAMMAR_BASE_H

#include "grammar/sets.h"
#include "grammar/vocabulary.h"

typedef struct bz_staying {
    int32_t id;
    uint32_t rounds; /* that begin inside the token */
} bz_staying;

typedef struct bz_leaving {
    int32_t id;
    uint32_t rounds; /* before it leaves */
} bz_leaving;

enum { BZ_BASE_LEVELS = 32 }; /* nearly all tokens have fewer characters */

typedef struct bz_base {
    bool safe, counted; /* all safe tokens stay; every character of them is a round */
    /* Staying tokens: many as bits, by rounds up to n_levels - 1 (those of a level include those of
     * the levels before it), the others as a list. */
    uint64_t *levels; /* [n_levels][words of the vocabulary] */
    uint32_t n_levels;
    uint32_t counts[BZ_BASE_LEVELS]; /* tokens of a level */
    bz_staying *staying;             /* [n_staying] */
    uint32_t n_staying;
    /* Leaving tokens: the tree of their bytes after the rule. Its tokens are indexes in `leaving`.
     */
    bz_trie *rest; /* NULL: none */
    bz_leaving *leaving;
} bz_base;

/* Of a state; `s` is used for its steps. NULL: failed, which `s` says. */
bz_base *bz_base_new(bz_sets *s, const bz_vocabulary *v, uint32_t state);
void bz_base_free(bz_base *b);

/* The same, found in or added to the vocabulary if the state's rule is a shared one. *own: the
 * caller frees it. */
const bz_base *bz_base_get(bz_sets *s, bz_vocabulary *v, uint32_t state, bool *own);

#endif
