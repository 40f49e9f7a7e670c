/* Adapters in tests: the golden data, and adapters made in memory. */
#ifndef BZ_TEST_LORA_H
#define BZ_TEST_LORA_H

#include "bezel_adapter.h"
#include "support/gguf_build.h"
#include "support/golden.h"

/* Opens an adapter of a model or ends the program with a FAIL line. */
bz_adapter *adapter_or_fail(const bz_model *m, const char *path);

/* An adapter in memory: lora_begin, pairs, gb_finish. */
void lora_begin(gguf_build *b, const char *architecture, float alpha);
/* Random values for a tensor of the model; alone: without the second half. */
void lora_pair(gguf_build *b, const bz_gguf_tensor *base, uint32_t rank, bz_type type);
/* Pairs for every matrix of the text model, of different ranks. */
void lora_all(gguf_build *b, const bz_gguf *model);
/* Opens what was built, or ends the program with a FAIL line. */
bz_adapter *built_adapter_or_fail(const bz_model *m, const gguf_build *b);

/* The model with `scale` of an adapter added to its weights, which become F32. Embeddings stay as
 * they are where they are the output matrix. */
void build_merged(gguf_build *out, const golden *model, const gguf_build *adapter, float scale);

/* The recorded logits of the case `model` ("dense" or "moe") with the adapters of each of its
 * combinations, one after the other in one session, and without any at the end. */
void check_lora(const char *model, const char *device, const bz_session_options *o, double bound);

#endif
