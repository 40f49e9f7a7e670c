/* What the recording functions of one model share. */
#ifndef BZ_MODEL_RECORD_H
#define BZ_MODEL_RECORD_H

#include "model/text.h"

/* Who a layer works for: a model that says one token after the other, or the two parts of a
 * diffusion model. */
typedef enum bz_layer_role {
    BZ_LAYER_OF_TEXT,
    BZ_LAYER_OF_ENCODER,
    BZ_LAYER_OF_CANVAS
} bz_layer_role;

/* Angles of all rows, one table per kind of layer. */
typedef struct bz_ropes {
    bz_tensor sliding, full; /* [n][D]: cos, sin */
} bz_ropes;
bz_ropes bz_record_ropes(bz_plan *p, const bz_text_model *m);

/* One layer, x [n][d] -> [n][d]; ple: per-layer inputs of all layers, or none (text.c). */
bz_tensor bz_record_layer(bz_plan *p, const bz_text_model *m, uint32_t i, bz_tensor x,
                          bz_tensor ple, const bz_ropes *rope, bz_layer_role role);
/* Of layer i its keys and values alone: what is left of an encoder's last layer (text.c). */
void bz_record_keys(bz_plan *p, const bz_text_model *m, uint32_t i, bz_tensor x,
                    const bz_ropes *rope);
/* Logits of the rows wanted, from `row` on (text.c). */
bz_tensor bz_record_logits(bz_plan *p, const bz_text_model *m, bz_tensor x, uint32_t row);

/* Experts of one layer. h: residual after attention [n][d] -> [n][d] (moe.c). */
bz_tensor bz_record_moe(bz_plan *p, const bz_config *c, const bz_layer_weights *w, bz_tensor h);

#endif
