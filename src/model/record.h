/* What the recording functions of one model share. */
#ifndef BZ_MODEL_RECORD_H
#define BZ_MODEL_RECORD_H

#include "model/text.h"

/* Experts of one layer. h: residual after attention [n][d] -> [n][d] (moe.c). */
bz_tensor bz_record_moe(bz_plan *p, const bz_config *c, const bz_layer_weights *w, bz_tensor h);

/* The dense FFN: down(gelu(gate u) * (up u)), u [n][d] -> [n][d] (text.c). */
bz_tensor bz_record_ffn(bz_plan *p, const bz_layer_weights *w, bz_tensor u);

#endif
