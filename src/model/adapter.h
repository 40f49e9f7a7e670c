/* Which tensors of an adapter's file change which weights of a model. Computes nothing. */
#ifndef BZ_MODEL_ADAPTER_H
#define BZ_MODEL_ADAPTER_H

#include "model/text.h"

enum { BZ_MAX_RANK = 4096 };

/* a and b of one weight, as the file has them: linear a [in, r], b [r, out]; experts a [in, r, E],
 * b [r, out, E]; table of embeddings a [r, V], b [r, out]. */
typedef struct bz_pair {
    bz_weight weight; /* that it changes; none: nothing that is computed reads it */
    const bz_gguf_tensor *a, *b;
    uint32_t rank;
    uint64_t in, out, experts; /* of a table `in` is the vocabulary */
    bool is_table;
} bz_pair;

typedef struct bz_pairs {
    bz_pair *list; /* [n], owned */
    uint32_t n;
    uint32_t least_rank, most_rank;
    uint32_t idle;  /* without a weight */
    uint32_t norms; /* tensors that were skipped: vectors that would replace norms */
    float alpha;    /* 0: the file has none */
} bz_pairs;

/* Checks the file against the model and fills *out; its tensors point into `adapter`. Every error
 * names the key or the tensor. */
bz_status bz_pairs_read(bz_pairs *out, const bz_text_model *m, const bz_files *files,
                        const bz_gguf *adapter, bz_error *err);
void bz_pairs_free(bz_pairs *pairs);

/* The first of the model's weights that are multiplied with the same input as w, w itself where no
 * other is. */
bz_weight bz_input_group(const bz_text_model *m, bz_weight w);
/* Are rows of it looked up, not multiplied? */
bool bz_is_table(const bz_text_model *m, bz_weight w);

/* The factor of a pair's product, without the user's scale: alpha / r, or 1 without alpha. */
float bz_pair_factor(const bz_pairs *pairs, const bz_pair *pair);

#endif
