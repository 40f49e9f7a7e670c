/* A model's tokens for all matchers of that model, which threads share: the tree of their texts,
 * and what is known of the rules that every JSON schema has. */
#ifndef BZ_GRAMMAR_VOCABULARY_H
#define BZ_GRAMMAR_VOCABULARY_H

#include "grammar/safe.h"
#include "grammar/trie.h"

typedef struct bz_vocabulary bz_vocabulary;

/* text: [n] by token (bz_trie_new). */
bz_status bz_vocabulary_new(bz_vocabulary **out, const bz_str *text, uint32_t n, bz_error *err);
void bz_vocabulary_free(bz_vocabulary *v);
const bz_trie *bz_vocabulary_trie(const bz_vocabulary *v);
const bz_safe *bz_vocabulary_safe(const bz_vocabulary *v);

/* What was kept under a key; NULL: nothing. put: keeps a value, which is freed with the vocabulary,
 * unless another thread was first or too much is kept: the value to be used is returned, and *taken
 * says whether the given one is owned now. */
const void *bz_vocabulary_get(bz_vocabulary *v, const void *key, size_t n);
const void *bz_vocabulary_put(bz_vocabulary *v, const void *key, size_t n, void *value,
                              void (*release)(void *value), bool *taken);

#endif
