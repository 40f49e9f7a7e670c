/* Records DiffusionGemma: one set of layers that works as an encoder of what was said and as a
 * denoiser of what is said next. The model is a bz_text_model whose config has a canvas. */
#ifndef BZ_MODEL_DIFFUSION_H
#define BZ_MODEL_DIFFUSION_H

#include "model/text.h"

/* A causal pass of up to `rows` tokens that fills the caches and has no output. */
bz_status bz_diffusion_record_encoder(const bz_text_model *m, uint32_t rows, bz_plan **out,
                                      bz_error *err);

/* Rows of logits at once: those of a whole canvas would be 268 MB. A divisor of the canvas. */
uint32_t bz_diffusion_block(const bz_text_model *m);

/* A denoising pass over a canvas: its rows see what the encoder left and each other. They are
 * written into the caches behind the encoder's, which will write over them. Output: bz_logit_stat
 * of every row; what the next pass is conditioned on stays in the plan. */
bz_status bz_diffusion_record_canvas(const bz_text_model *m, bz_plan **out, bz_error *err);

/* For checking. The same pass, whose output is one block of logits (n_out rows, named by
 * bz_rows.out); it is conditioned on bz_rows.given [canvas][d], or on nothing. And: given a block
 * of logits as bz_rows.given [n][vocabulary], the mean embeddings [n][d] that a pass behind them
 * would be conditioned on. */
bz_status bz_diffusion_record_logits(const bz_text_model *m, bz_plan **out, bz_error *err);
bz_status bz_diffusion_record_condition(const bz_text_model *m, bz_plan **out, bz_error *err);

#endif
