/* The vocabulary as a tree of bytes: a node is a text with which tokens begin. Nodes are in order
 * of depth-first search, so everything below a node follows it, and so do the tokens below it in
 * `order`. Immutable. */
#ifndef BZ_GRAMMAR_TRIE_H
#define BZ_GRAMMAR_TRIE_H

#include "base/error.h"

enum { BZ_MAX_TOKEN_BYTES = 1024 };

typedef struct bz_trie {
    uint32_t n_tokens; /* ids are below */
    uint32_t n_nodes;  /* node 0 is the empty text */
    uint8_t *byte;     /* [n_nodes] the last one of its text */
    uint16_t *depth;   /* [n_nodes] length of its text */
    uint32_t *after;   /* [n_nodes] the first node that is not below it */
    uint32_t
        *first; /* [n_nodes + 1] its own tokens, and then those below it, begin here in `order` */
    int32_t *order; /* [n_order] tokens by their texts */
    uint32_t n_order;
    bz_str *text; /* [n_tokens] into `bytes`; empty: a token that no grammar takes */
    char *bytes;
    uint32_t longest; /* text */
} bz_trie;

/* text: [n] of each token as a grammar sees it (special tokens: build.h); empty ones are left out.
 * Copied. */
bz_status bz_trie_new(bz_trie **out, const bz_str *text, uint32_t n, bz_error *err);
void bz_trie_free(bz_trie *t);

/* Tokens of a node itself: order[*from .. *to). */
static inline void bz_trie_tokens(const bz_trie *t, uint32_t node, uint32_t *from, uint32_t *to)
{
    *from = t->first[node];
    *to = t->first[node + 1]; /* of the first child, of the next node, or the end */
}

#endif
