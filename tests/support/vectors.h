/* EmbeddingGemma's golden data, for tests on any device. */
#ifndef BZ_TEST_VECTORS_H
#define BZ_TEST_VECTORS_H

#include "bezel_embed.h"
#include "support/golden.h"

/* Opens an embedder or ends the program with a FAIL line. */
bz_embedder *embedder_or_fail(const bz_model *m, const bz_embedder_options *o);

/* The vectors of n texts, to be freed, and their size; NULL with *err filled. */
float *vectors_of(bz_embedder *e, const bz_embed_input *inputs, size_t n, const bz_embed_options *o,
                  uint32_t *d, bz_error *err);

/* The golden sequences of `case` one by one and all together, cut ones too: within `bound`. */
void check_vectors(const golden *g, const bz_model *m, const bz_embedder_options *o, double bound);

enum { GOLDEN_SEQUENCES = 7 };

#endif
