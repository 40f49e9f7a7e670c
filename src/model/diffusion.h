/* Records DiffusionGemma: the same layers are the encoder of committed tokens and the denoiser of
 * the canvas. The model is a bz_text_model whose config has a canvas. */
#ifndef BZ_MODEL_DIFFUSION_H
#define BZ_MODEL_DIFFUSION_H

#include "model/text.h"

/* A causal pass of up to `rows` tokens that fills the caches and has no output. */
bz_status bz_diffusion_record_encoder(const bz_text_model *m, uint32_t rows, bz_plan **out,
                                      bz_error *err);

/* Rows of logits per block, a divisor of the canvas: logits of a whole canvas would be 268 MB. */
uint32_t bz_diffusion_block(const bz_text_model *m);

/* A denoising pass over a canvas. Its keys and values are written after the encoder's, which
 * overwrites them when the canvas is committed. Output: bz_logit_stat of every row; the soft
 * embeddings for the next pass stay in a kept tensor. */
bz_status bz_diffusion_record_canvas(const bz_text_model *m, bz_plan **out, bz_error *err);

/* For tests. record_logits: the same pass, but its output is one block of logits (the rows of
 * bz_rows.out); it is conditioned on bz_rows.kept_input [canvas][d], or on nothing.
 * record_condition: from a block of logits in bz_rows.kept_input [n][vocabulary] to the soft
 * embeddings [n][d] that the next pass would be conditioned on. */
bz_status bz_diffusion_record_logits(const bz_text_model *m, bz_plan **out, bz_error *err);
bz_status bz_diffusion_record_condition(const bz_text_model *m, bz_plan **out, bz_error *err);

#endif
