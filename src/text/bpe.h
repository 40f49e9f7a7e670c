/* BPE: merges one run of symbols by rank. Internal to src/text. */
#ifndef BZ_TEXT_BPE_H
#define BZ_TEXT_BPE_H

#include "text/vocab.h"

/* A run of symbols and the buffers for merging. One per call, so that a tokenizer can be shared
 * between threads. Zero-initialize. */
typedef struct bz_bpe {
    uint32_t *symbol; /* [n] */
    size_t n, cap;
    /* for long runs */
    struct bz_bpe_node *node;
    size_t node_cap;
    uint64_t *heap;
    size_t heap_n, heap_cap;
} bz_bpe;

bool bz_bpe_push(bz_bpe *w, uint32_t symbol); /* false: out of memory */

/* Merges until no two neighbors have a rank: lowest rank first, leftmost first among equals. The
 * result replaces the symbols. False: out of memory. */
bool bz_bpe_merge(const bz_tokenizer *t, bz_bpe *w);

void bz_bpe_free(bz_bpe *w);

#endif
