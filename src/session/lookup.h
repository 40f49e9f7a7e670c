/* Drafts found in the prompt and the answer so far: what followed the last tokens when they last
 * occurred. */
#ifndef BZ_SESSION_LOOKUP_H
#define BZ_SESSION_LOOKUP_H

#include <stdbool.h>
#include <stdint.h>

typedef struct bz_lookup {
    uint32_t *pairs, *triples; /* [1 << bits] by hash: the position after the last such tokens */
    uint32_t bits;
    uint32_t n; /* tokens indexed */
} bz_lookup;

/* For up to `context` tokens. False: out of memory. */
bool bz_lookup_init(bz_lookup *l, uint32_t context);
void bz_lookup_free(bz_lookup *l);
/* Writes up to `most` drafts after tokens [n], which has the capacity for them, and returns how
 * many. Tokens below 0 (rows of media) are never drafted. Tokens that were indexed by an earlier
 * call must be the same. */
uint32_t bz_lookup_find(bz_lookup *l, int32_t *tokens, uint32_t n, uint32_t most);

#endif
