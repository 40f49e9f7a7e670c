/* The sampling settings that a file recommends. All of them are optional. */
#ifndef BZ_MODEL_HINTS_H
#define BZ_MODEL_HINTS_H

#include "file/gguf.h"

/* Fills temperature, top_k and top_p from general.sampling.* where they are zero and the file has
 * a valid value. */
void bz_hints_sampling(const bz_gguf *gguf, bz_sampling *s);

/* Tokens that must never be sampled (tokenizer.ggml.suppress_tokens): returns how many of them are
 * in the vocabulary and writes their ids unless `ids` is NULL. */
uint32_t bz_hints_suppressed(const bz_gguf *gguf, uint32_t vocab, int32_t *ids);

#endif
