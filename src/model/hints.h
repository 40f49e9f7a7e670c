/* What a file recommends for choosing tokens. All of it is optional. */
#ifndef BZ_MODEL_HINTS_H
#define BZ_MODEL_HINTS_H

#include "file/gguf.h"

/* Fills the temperature, top_k and top_p that are zero from general.sampling.*, where the file
 * has a sensible value. */
void bz_hints_sampling(const bz_gguf *gguf, bz_sampling *s);

/* Ids that must never be chosen (tokenizer.ggml.suppress_tokens): returns how many of them are in
 * the vocabulary and writes them unless `ids` is NULL. */
uint32_t bz_hints_suppressed(const bz_gguf *gguf, uint32_t vocab, int32_t *ids);

#endif
