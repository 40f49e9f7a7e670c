/* Random texts of a grammar, token by token, over a small vocabulary. */
#ifndef BZ_TEST_WALK_H
#define BZ_TEST_WALK_H

#include "grammar/matcher.h"
#include "support/random.h"

enum { WALK_CAPACITY = 1 << 16 };

/* All single bytes, and some hundred pieces of JSON and words. */
bz_vocabulary *walk_vocabulary(void);
bz_str walk_token(const bz_vocabulary *v, int32_t id);

/* A random text of the grammar in out [WALK_CAPACITY]; returns its length, or -1 with *err: the
 * matcher failed, allowed what it does not take, or (aborted) did not come to an end, as chance
 * never wrote what a pattern asks for. After `tokens` tokens the shortest way to the end is looked
 * for. */
int64_t walk(bz_matcher *m, const bz_vocabulary *v, uint64_t *random, uint32_t tokens, char *out,
             bz_error *err);

#endif
