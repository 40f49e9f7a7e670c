/* Recording functions shared by text.c, moe.c, diffusion.c and embedding.c. */
#ifndef BZ_MODEL_RECORD_H
#define BZ_MODEL_RECORD_H

#include "model/text.h"

typedef enum bz_layer_role {
    BZ_LAYER_OF_TEXT,    /* autoregressive model */
    BZ_LAYER_OF_ENCODER, /* diffusion model, committed tokens */
    BZ_LAYER_OF_CANVAS,  /* diffusion model, canvas */
    BZ_LAYER_OF_TEXTS    /* model of embeddings */
} bz_layer_role;

/* Rope tables of all rows, one per kind of layer. */
typedef struct bz_ropes {
    bz_tensor sliding, full; /* [n][D]: cos, sin */
} bz_ropes;
bz_ropes bz_record_ropes(bz_plan *p, const bz_text_model *m);

/* One layer, x [n][d] -> [n][d]; ple: per-layer inputs [n][L*P], or none (text.c). */
bz_tensor bz_record_layer(bz_plan *p, const bz_text_model *m, uint32_t i, bz_tensor x,
                          bz_tensor ple, const bz_ropes *rope, bz_layer_role role);
/* Only the keys and values of layer i, for the last layer of an encoder pass; x [n][d] (text.c). */
void bz_record_keys(bz_plan *p, const bz_text_model *m, uint32_t i, bz_tensor x,
                    const bz_ropes *rope);
/* Logits [m][V] of rows first_row + bz_rows.out[r] of x [n][d] (text.c). */
bz_tensor bz_record_logits(bz_plan *p, const bz_text_model *m, bz_tensor x, uint32_t first_row);

/* Experts of one layer. h: residual after attention [n][d] -> [n][d] (moe.c). */
bz_tensor bz_record_moe(bz_plan *p, const bz_text_model *m, const bz_layer_weights *w, bz_tensor h);

/* What the session's adapters add (low_rank.c): y, computed from x with the weight w, becomes
 * y + scale * b (a x).
 *
 * Products that share an input x have one product with a, bz_low_rank_input, recorded before them;
 * w: their weights, some of which may be absent. bz_adapt_linear comes after all of them, so that
 * back ends can still compute them together. Without adapters neither records anything. */
bz_tensor bz_low_rank_input(bz_plan *p, const bz_text_model *m, bz_tensor x, const bz_weight *w,
                            uint32_t n);
bz_tensor bz_adapt_linear(bz_plan *p, const bz_text_model *m, bz_tensor y, bz_tensor low,
                          bz_weight w);
/* y = w x, adapted, where no other product reads x. */
bz_tensor bz_adapted_linear(bz_plan *p, const bz_text_model *m, bz_tensor x, bz_weight w,
                            const char *name);
/* experts: x [n][d], or a part for each of `used` slots. embed: y = scale * row of the table; soft:
 * rows with a soft token stay as they are. */
bz_tensor bz_adapt_experts(bz_plan *p, const bz_text_model *m, bz_tensor y, bz_tensor x,
                           bz_tensor ids, bz_weight w, uint32_t used);
bz_tensor bz_adapt_embed(bz_plan *p, const bz_text_model *m, bz_tensor y, bz_weight table,
                         float scale, bool soft);

#endif
