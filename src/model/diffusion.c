/* DiffusionGemma: text is generated in canvases of C tokens, each denoised in several passes.
 *
 *   encoder pass, causal, over all committed tokens:
 *     x    = embed(token) * sqrt(d)
 *     x    = the text model's layers, with their own output scales; only K and V are used
 *
 *   denoising pass, over the canvas; every row sees the encoder's keys and the whole canvas:
 *     p    = softmax(logits of the previous pass / its temperature)
 *     soft = sqrt(d) * sum over v of p_v embed(v), or 0 in the first pass
 *     u    = RMS(soft, self_cond_norm)
 *     x    = RMS(embed(token) * sqrt(d) + down(gelu(gate u) * (up u)))
 *     x    = the text model's layers
 *     z    = cap * tanh(head(RMS(x)) / cap)
 *
 * A pass needs only `soft` from the previous one. So each pass computes it at its end, one block of
 * logits at a time, and the logits are never kept. */
#include "model/diffusion.h"

#include <math.h>

#include "model/record.h"

enum { BLOCK = 64 }; /* maximum rows of logits: 67 MB with a vocabulary of 262,144 */

uint32_t bz_diffusion_block(const bz_text_model *m)
{
    uint32_t block = m->config.canvas < BLOCK ? m->config.canvas : BLOCK;
    while (m->config.canvas % block) {
        block--;
    }
    return block;
}

static bz_status finish(bz_plan *p, bz_tensor output, bz_plan **out, bz_error *err)
{
    bz_status status = bz_plan_finish(p, output, err);
    if (status != BZ_OK) {
        bz_plan_free(p);
        return status;
    }
    *out = p;
    return BZ_OK;
}

static bz_tensor embed(bz_plan *p, const bz_text_model *m)
{
    return bz_embed(p, m->weights.token_embd, (float)sqrt(m->config.width), "embed");
}

bz_status bz_diffusion_record_encoder(const bz_text_model *m, uint32_t rows, bz_plan **out,
                                      bz_error *err)
{
    const bz_config *c = &m->config;
    bz_plan *p = NULL;
    bz_status status = bz_plan_new(&p, &m->weights.table, m->caches, m->n_caches, rows, 0, err);
    if (status != BZ_OK) {
        return status;
    }
    const bz_ropes rope = bz_record_ropes(p, m);
    bz_tensor x = embed(p, m);
    bz_last_accepts_soft(p);
    for (uint32_t i = 0; i + 1 < c->layers; i++) {
        p->layer = (int32_t)i;
        bz_cut(p, "layer");
        x = bz_record_layer(p, m, i, x, BZ_NO_TENSOR, &rope, BZ_LAYER_OF_ENCODER);
    }
    p->layer = (int32_t)c->layers - 1;
    bz_cut(p, "layer");
    bz_record_keys(p, m, c->layers - 1, x, &rope); /* the rest of the last layer is unused */
    return finish(p, x, out, err);
}

/* ---- the denoiser -------------------------------------------------------------------- */

/* The input of the first layer, [n][d]. In the first pass `kept` reads as 0, and so is sc. */
static bz_tensor canvas_input(bz_plan *p, const bz_text_model *m, bz_tensor kept)
{
    const bz_config *c = &m->config;
    const bz_text_weights *w = &m->weights;
    bz_tensor u = bz_read_kept(p, kept, "soft_embed");
    u = bz_rms_norm(p, u, w->self_cond_norm, c->width, c->eps, "self_cond_norm");
    bz_tensor gate = bz_linear(p, u, w->self_cond_gate, "self_cond_gate");
    bz_tensor up = bz_linear(p, u, w->self_cond_up, "self_cond_up");
    bz_tensor act = bz_geglu(p, gate, up, "self_cond_act");
    bz_tensor sc = bz_linear(p, act, w->self_cond_down, "self_cond");
    bz_tensor x = bz_add(p, embed(p, m), sc, 1.0f, "canvas_embed");
    return bz_rms_norm(p, x, BZ_NO_WEIGHT, c->width, c->eps, "input");
}

static bz_tensor canvas_layers(bz_plan *p, const bz_text_model *m, bz_tensor kept)
{
    const bz_ropes rope = bz_record_ropes(p, m);
    bz_tensor x = canvas_input(p, m, kept);
    for (uint32_t i = 0; i < m->config.layers; i++) {
        p->layer = (int32_t)i;
        bz_cut(p, "layer");
        x = bz_record_layer(p, m, i, x, BZ_NO_TENSOR, &rope, BZ_LAYER_OF_CANVAS);
    }
    p->layer = -1;
    bz_cut(p, "logits");
    return x;
}

bz_status bz_diffusion_record_canvas(const bz_text_model *m, bz_plan **out, bz_error *err)
{
    const bz_config *c = &m->config;
    const uint32_t block = bz_diffusion_block(m);
    const float scale = (float)sqrt(c->width);
    bz_plan *p = NULL;
    bz_status status =
        bz_plan_new(&p, &m->weights.table, m->caches, m->n_caches, c->canvas, block, err);
    if (status != BZ_OK) {
        return status;
    }
    bz_tensor kept = bz_kept_tensor(p, c->width), stats = BZ_NO_TENSOR;
    bz_tensor x = canvas_layers(p, m, kept);
    for (uint32_t row = 0; row < c->canvas; row += block) {
        bz_tensor z = bz_record_logits(p, m, x, row);
        bz_logit_stats(p, z, row, &stats, "logit_stats");
        bz_soft_embed(p, z, stats, m->weights.token_embd, scale, row, kept, "soft_embed");
    }
    return finish(p, stats, out, err);
}

bz_status bz_diffusion_record_logits(const bz_text_model *m, bz_plan **out, bz_error *err)
{
    const bz_config *c = &m->config;
    bz_plan *p = NULL;
    bz_status status = bz_plan_new(&p, &m->weights.table, m->caches, m->n_caches, c->canvas,
                                   bz_diffusion_block(m), err);
    if (status != BZ_OK) {
        return status;
    }
    bz_tensor x = canvas_layers(p, m, bz_kept_tensor(p, c->width));
    return finish(p, bz_record_logits(p, m, x, 0), out, err);
}

bz_status bz_diffusion_record_condition(const bz_text_model *m, bz_plan **out, bz_error *err)
{
    const bz_config *c = &m->config;
    const uint32_t block = bz_diffusion_block(m);
    bz_plan *p = NULL;
    bz_status status =
        bz_plan_new(&p, &m->weights.table, m->caches, m->n_caches, block, block, err);
    if (status != BZ_OK) {
        return status;
    }
    bz_tensor z = bz_kept_tensor(p, c->vocab), stats = BZ_NO_TENSOR,
              soft = bz_kept_tensor(p, c->width);
    bz_logit_stats(p, z, 0, &stats, "logit_stats");
    bz_soft_embed(p, z, stats, m->weights.token_embd, (float)sqrt(c->width), 0, soft, "soft_embed");
    return finish(p, soft, out, err);
}
