/* Records the Gemma 4 text model as a plan. */
#ifndef BZ_MODEL_TEXT_H
#define BZ_MODEL_TEXT_H

#include "model/config.h"
#include "model/weights.h"
#include "plan/plan.h"

/* What the adapters of a session add to the product with one weight: scale * b t, where t are the
 * columns from `first` on of a x. Products of one input have one a. Both tensors are in the table
 * that the plans are recorded with. */
typedef struct bz_low_rank {
    bz_weight a; /* [in, R]; of a table of embeddings [r, V]; of experts [in, r, E] */
    bz_weight b; /* in panels: see bz_add_low_rank; none: nothing is added */
    uint32_t first;
    float scale;
} bz_low_rank;

typedef struct bz_low_ranks {
    const bz_low_rank *of; /* [n] by the number of the weight, less 1 */
    uint32_t n;            /* weights of the model */
} bz_low_ranks;

typedef struct bz_text_model {
    bz_config config;
    bz_text_weights weights;
    bz_cache_info *caches; /* [n_caches], one per layer that owns keys and values; owned */
    bz_cache *cache_of;    /* [layers] the cache each layer reads; owned */
    uint32_t n_caches;
    bz_image_attention sliding_image, full_image; /* by kind of layer */
    struct bz_assistant *assistant;               /* its drafter (assistant.h); NULL: none; owned */
    const bz_low_ranks *adapters; /* of a session's copy of this struct; NULL: none */
} bz_text_model;

bz_status bz_text_model_new(bz_text_model *m, const bz_files *files, bz_error *err);
void bz_text_model_free(bz_text_model *m);
/* Models with per-layer embeddings read images like text. In the others sliding layers also see the
 * rest of an image; with `whole` (12B, diffusion models) every layer sees all of it. No key of the
 * file says so. */
void bz_text_set_image_attention(bz_text_model *m, bool whole);

/* A pass of up to `rows` tokens with logits [m][V] of up to `out_rows` of them; 0: the pass only
 * fills the caches. Of a model of embeddings: a pass over up to `out_rows` texts (embedding.h). */
bz_status bz_text_record(const bz_text_model *m, uint32_t rows, uint32_t out_rows, bz_plan **out,
                         bz_error *err);

#endif
