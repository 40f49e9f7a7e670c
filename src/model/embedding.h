/* EmbeddingGemma: a vector for each text. An encoder: every token of a text sees the others, in
 * sliding layers those within the window on both sides.
 *
 *   x = layers(embed(tokens))                   as text.c has them; Gemma 4's or Gemma 3's
 *   vector = dense_3 (dense_2 (mean over the tokens of RMS(x)))
 *
 * The host cuts the vector (Matryoshka) and divides it by its length. Files: `gemma-embedding`, as
 * llama.cpp's converter writes them; `gemma3`, Ollama's; `gemma-embedding2`, EmbeddingGemma 2,
 * whose GGUF names are our own (docs/MODEL.md). */
#ifndef BZ_MODEL_EMBEDDING_H
#define BZ_MODEL_EMBEDDING_H

#include "model/text.h"

bool bz_embedding_knows(bz_str architecture); /* gemma3 among them, whatever the file holds */
/* Whether the file holds a model of embeddings. */
bool bz_embedding_is(const bz_gguf *gguf);
bz_status bz_embedding_config_read(bz_config *c, const bz_gguf *gguf, bz_error *err);

/* Fills the table of caches: nothing is kept from pass to pass, so layers of one shape share one.
 */
void bz_embedding_caches(bz_text_model *m);

/* A pass over up to `texts` texts with `rows` tokens together -> [texts][size]. bz_rows: out[t] is
 * the first row of text t, and rows of a text follow each other at consecutive positions;
 * image_first and image_last are the positions of their text's first and last row. */
bz_status bz_embedding_record(const bz_text_model *m, uint32_t rows, uint32_t texts, bz_plan **out,
                              bz_error *err);

#endif
