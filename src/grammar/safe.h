/* Safe tokens: whole characters that need no escape in JSON and end no line. Nearly all tokens of a
 * vocabulary are safe, and most states inside a text take all of them, so they are not tried one by
 * one there. */
#ifndef BZ_GRAMMAR_SAFE_H
#define BZ_GRAMMAR_SAFE_H

#include "grammar/grammar.h"
#include "grammar/trie.h"

enum { BZ_SAFE_LEVELS = 32 };

typedef struct bz_safe_token {
    int32_t id;
    uint32_t characters;
} bz_safe_token;

typedef struct bz_safe {
    uint32_t counts[BZ_SAFE_LEVELS]; /* tokens of a level */
    uint64_t *levels; /* [BZ_SAFE_LEVELS][words]: safe tokens of at most 1, 2, 3 ... characters */
    bz_safe_token *longer; /* [n_longer] of more characters */
    uint32_t n_longer;
    bz_trie *others; /* tokens that are not safe */
} bz_safe;

bz_status bz_safe_new(bz_safe *s, const bz_str *text, uint32_t n, bz_error *err); /* zeroed */
void bz_safe_free(bz_safe *s);

/* Whether all safe tokens stay in the state's rule. counted: the rule is the body of a loop, of
 * which every character is a round. follow: bytes that can come after it. */
bool bz_safe_taken(const bz_grammar *g, uint32_t state, bool counted, const bz_byte_set *follow);

#endif
