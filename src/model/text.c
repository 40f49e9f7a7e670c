/* The Gemma 4 text model, all sizes.
 *
 *   x = embed(token) * sqrt(d)
 *   for each layer:
 *     h = x + RMS(attention(RMS(x)))
 *     y = h + RMS(FFN(RMS(h)))                   with experts: FFN and MoE, summed (moe.c)
 *     y = y + RMS(proj(gelu(gate y) * ple_i))    models with per-layer embeddings
 *     x = y * layer_output_scale
 *   logits = cap * tanh(head(RMS(x)) / cap)
 *
 * Names of steps are those of the reference implementation's tensors. */
#include "model/text.h"

#include <math.h>
#include <stdlib.h>

#include "model/assistant.h"
#include "model/diffusion.h"
#include "model/embedding.h"
#include "model/record.h"

/* ---- one layer ------------------------------------------------------------- */

/* What adapters multiply the normed input a of attention with, before its products. */
static bz_tensor attention_input(bz_plan *p, const bz_text_model *m, uint32_t i, bz_tensor a)
{
    const bz_layer_weights *w = &m->weights.layer[i];
    const bz_weight products[] = {w->attn_q, w->attn_k, w->attn_v};
    return bz_low_rank_input(p, m, a, products, sizeof products / sizeof *products);
}

/* K and V of the normed input a [n][d] into the layer's cache. q: the queries, computed from a as
 * well and not adapted yet; or none. Returns them adapted. low: attention_input. */
static bz_tensor keys(bz_plan *p, const bz_text_model *m, uint32_t i, bz_tensor a, bz_tensor low,
                      bz_tensor q, const bz_ropes *rope)
{
    const bz_layer_config *l = &m->config.layer[i];
    const bz_layer_weights *w = &m->weights.layer[i];
    const float eps = m->config.eps;
    const uint32_t D = l->head_dim;

    bz_tensor k = bz_linear(p, a, w->attn_k, "k_proj");
    bz_tensor v = w->attn_v.id ? bz_linear(p, a, w->attn_v, "v_proj") : BZ_NO_TENSOR;
    q = q.id ? bz_adapt_linear(p, m, q, low, w->attn_q) : q;
    k = bz_adapt_linear(p, m, k, low, w->attn_k);
    v = w->attn_v.id ? bz_adapt_linear(p, m, v, low, w->attn_v) : k; /* K before norm and rope */
    k = bz_rms_norm(p, k, w->attn_k_norm, D, eps, "k_norm");
    k = bz_rope(p, k, l->sliding ? rope->sliding : rope->full, D, "k_rope");
    if (!m->config.embedding.raw_values) {
        v = bz_rms_norm(p, v, BZ_NO_WEIGHT, D, eps, "v_norm");
    }
    bz_kv_write(p, k, v, m->cache_of[i], "kv");
    return q;
}

void bz_record_keys(bz_plan *p, const bz_text_model *m, uint32_t i, bz_tensor x,
                    const bz_ropes *rope)
{
    bz_tensor a = bz_rms_norm(p, x, m->weights.layer[i].attn_norm, m->config.width, m->config.eps,
                              "attn_norm");
    keys(p, m, i, a, attention_input(p, m, i, a), BZ_NO_TENSOR, rope);
}

/* a [n][d], normed -> [n][d] */
static bz_tensor attention(bz_plan *p, const bz_text_model *m, uint32_t i, bz_tensor a,
                           const bz_ropes *rope, bz_layer_role role)
{
    const bz_layer_config *l = &m->config.layer[i];
    const bz_layer_weights *w = &m->weights.layer[i];
    const float eps = m->config.eps;
    const uint32_t D = l->head_dim;
    bz_tensor angles = l->sliding ? rope->sliding : rope->full;
    bz_cache cache = m->cache_of[i];

    bz_tensor low = attention_input(p, m, i, a), q = bz_linear(p, a, w->attn_q, "q_proj");
    q = l->owns_kv ? keys(p, m, i, a, low, q, rope) : bz_adapt_linear(p, m, q, low, w->attn_q);
    q = bz_rms_norm(p, q, w->attn_q_norm, D, eps, "q_norm");
    if (role == BZ_LAYER_OF_TEXTS && m->config.embedding.query_scale != 1.0f) {
        q = bz_multiply(p, q, m->config.embedding.query_scale, "q_scaled");
    }
    q = bz_rope(p, q, angles, D, "q_rope");
    const uint32_t window = l->sliding ? m->config.window : 0;
    bz_tensor o = role == BZ_LAYER_OF_CANVAS
                      ? bz_attend_bidirectional(p, q, cache, l->heads, D, window, "attn")
                      : bz_attend(p, q, cache, l->heads, D, window, "attn");
    if (role == BZ_LAYER_OF_TEXTS) {
        bz_last_image_attention(p, BZ_TEXT_BOTH_WAYS);
    } else if (role != BZ_LAYER_OF_CANVAS) {
        bz_last_image_attention(p, l->sliding ? m->sliding_image : m->full_image);
    }
    return bz_adapted_linear(p, m, o, w->attn_output, "attn_out");
}

/* The dense FFN: down(gelu(gate u) * (up u)), u [n][d] -> [n][d]. */
static bz_tensor ffn(bz_plan *p, const bz_text_model *m, const bz_layer_weights *w, bz_tensor u)
{
    bz_tensor low = bz_low_rank_input(p, m, u, (const bz_weight[]){w->ffn_gate, w->ffn_up}, 2);
    bz_tensor gate = bz_linear(p, u, w->ffn_gate, "mlp_gate");
    bz_tensor up = bz_linear(p, u, w->ffn_up, "mlp_up");
    gate = bz_adapt_linear(p, m, gate, low, w->ffn_gate);
    up = bz_adapt_linear(p, m, up, low, w->ffn_up);
    return bz_adapted_linear(p, m, bz_geglu(p, gate, up, "mlp_act"), w->ffn_down, "mlp_out");
}

bz_tensor bz_record_layer(bz_plan *p, const bz_text_model *m, uint32_t i, bz_tensor x,
                          bz_tensor ple, const bz_ropes *rope, bz_layer_role role)
{
    const bz_layer_weights *w = &m->weights.layer[i];
    const bz_config *c = &m->config;
    const uint32_t d = c->width, P = c->ple_width;
    const float eps = c->eps;

    bz_tensor a = bz_rms_norm(p, x, w->attn_norm, d, eps, "attn_norm");
    a = attention(p, m, i, a, rope, role);
    a = bz_rms_norm(p, a, w->post_attention_norm, d, eps, "post_attention_norm");
    bz_tensor h = bz_add(p, x, a, 1.0f, "attn_residual");

    bz_tensor f = bz_rms_norm(p, h, w->ffn_norm, d, eps, "ffn_norm");
    f = ffn(p, m, w, f);
    if (w->router.id) {
        f = bz_rms_norm(p, f, w->post_ffw_norm_1, d, eps, "post_ffw_norm_1");
        bz_tensor e = bz_record_moe(p, m, w, h);
        e = bz_rms_norm(p, e, w->post_ffw_norm_2, d, eps, "post_ffw_norm_2");
        f = bz_add(p, f, e, 1.0f, "mlp_and_moe");
    }
    f = bz_rms_norm(p, f, w->post_ffw_norm, d, eps, "post_ffw_norm");
    bz_tensor y = bz_add(p, h, f, 1.0f, "ffn_residual");

    if (P) {
        bz_tensor g = bz_adapted_linear(p, m, y, w->inp_gate, "ple_gate");
        g = bz_geglu(p, g, bz_columns(p, ple, i * P, P), "ple_act");
        g = bz_adapted_linear(p, m, g, w->proj, "ple_proj");
        g = bz_rms_norm(p, g, w->post_norm, d, eps, "ple_norm");
        y = bz_add(p, y, g, 1.0f, "ple_residual");
    }
    const bz_weight scale =
        role == BZ_LAYER_OF_ENCODER ? w->encoder_output_scale : w->layer_output_scale;
    return scale.id ? bz_scale(p, y, scale, "hidden") : y;
}

/* ---- around the layers ------------------------------------------------------ */

/* Per-layer inputs of all layers, [n][L*P] = (table row + RMS(projection of x)) / sqrt(2), the
 * norm for each layer's P values. x: [n][d], the scaled embedding. */
static bz_tensor per_layer_inputs(bz_plan *p, const bz_text_model *m, bz_tensor x)
{
    const bz_config *c = &m->config;
    const bz_text_weights *w = &m->weights;
    bz_cut(p, "ple_rows"); /* the table may stay in the file: its rows are fetched here */
    const float scale = sqrtf((float)c->ple_width);
    bz_tensor token = bz_embed(p, w->per_layer_token_embd, scale, "ple_token");
    token = bz_adapt_embed(p, m, token, w->per_layer_token_embd, scale, false);
    bz_tensor context = bz_adapted_linear(p, m, x, w->per_layer_model_proj, "ple_model_proj");
    /* The reference multiplies by 1/sqrt(d) before the norm. The norm cancels that factor except
     * for eps, so a norm with d * eps gives the same result. */
    context = bz_rms_norm(p, context, w->per_layer_proj_norm, c->ple_width,
                          c->eps * (float)c->width, "ple_proj_norm");
    return bz_add(p, context, token, (float)(1.0 / sqrt(2.0)), "ple");
}

bz_ropes bz_record_ropes(bz_plan *p, const bz_text_model *m)
{
    const bz_config *c = &m->config;
    const bz_text_weights *w = &m->weights;
    bz_ropes rope = {0};
    /* One table per kind of layer. They come first, so that the host can fill them in. */
    for (uint32_t i = 0; i < c->layers; i++) {
        const uint32_t D = c->layer[i].head_dim;
        if (c->layer[i].sliding && !rope.sliding.id) {
            rope.sliding =
                bz_rope_table(p, BZ_NO_WEIGHT, D, D / 2, c->rope_base_sliding, "rope_sliding");
        } else if (!c->layer[i].sliding && !rope.full.id) {
            uint32_t pairs = w->rope_freqs.id ? D / 2 : (uint32_t)(D / 2 * c->rope_rotated);
            rope.full = bz_rope_table(p, w->rope_freqs, D, pairs, c->rope_base, "rope_full");
        }
    }
    return rope;
}

bz_tensor bz_record_logits(bz_plan *p, const bz_text_model *m, bz_tensor x, uint32_t first_row)
{
    const bz_config *c = &m->config;
    x = bz_take_rows_from(p, x, first_row, "last_hidden");
    x = bz_rms_norm(p, x, m->weights.output_norm, c->width, c->eps, "final_norm");
    const bz_weight head = m->weights.output;
    /* Where the embeddings are the output matrix, too, adapters change the embeddings only. */
    bz_tensor y = head.id == m->weights.token_embd.id ? bz_linear(p, x, head, "lm_head")
                                                      : bz_adapted_linear(p, m, x, head, "lm_head");
    y = c->softcap > 0 ? bz_softcap(p, y, c->softcap, "logits") : y;
    if (m->assistant && p->out_rows <= BZ_SHARED_ROWS) { /* what a drafter begins with */
        bz_share(p, x, bz_shared_tensor(p, c->width, false), "state");
    }
    return y;
}

bz_status bz_text_record(const bz_text_model *m, uint32_t rows, uint32_t out_rows, bz_plan **out,
                         bz_error *err)
{
    const bz_config *c = &m->config;
    const bz_text_weights *w = &m->weights;
    if (c->embedding.embeds) {
        return bz_embedding_record(m, rows, out_rows ? out_rows : 1, out, err);
    }
    bz_plan *p = NULL;
    bz_status status = bz_plan_new(&p, &w->table, m->caches, m->n_caches, rows, out_rows, err);
    if (status != BZ_OK) {
        return status;
    }
    const bz_ropes rope = bz_record_ropes(p, m);
    const float scale = (float)sqrt(c->width);
    bz_tensor x = bz_embed(p, w->token_embd, scale, "embed");
    bz_last_accepts_soft(p);
    x = bz_adapt_embed(p, m, x, w->token_embd, scale, true);
    bz_tensor ple = c->ple_width ? per_layer_inputs(p, m, x) : BZ_NO_TENSOR;
    for (uint32_t i = 0; i < c->layers; i++) {
        p->layer = (int32_t)i;
        bz_cut(p, "layer");
        x = bz_record_layer(p, m, i, x, ple, &rope, BZ_LAYER_OF_TEXT);
    }
    p->layer = -1;
    if (out_rows) {
        x = bz_record_logits(p, m, x, 0);
    }
    status = bz_plan_finish(p, x, err);
    if (status != BZ_OK) {
        bz_plan_free(p);
        return status;
    }
    *out = p;
    return BZ_OK;
}

/* ---- the model --------------------------------------------------------------- */

static bz_status number_caches(bz_text_model *m, bz_error *err)
{
    const bz_config *c = &m->config;
    m->caches = calloc(c->layers, sizeof *m->caches);
    m->cache_of = calloc(c->layers, sizeof *m->cache_of);
    if (!m->caches || !m->cache_of) {
        return bz_fail(err, BZ_OUT_OF_MEMORY,
                       "There is not enough memory for the table of %u caches.", c->layers);
    }
    if (c->embedding.embeds) {
        bz_embedding_caches(m);
        return BZ_OK;
    }
    for (uint32_t i = 0; i < c->layers; i++) {
        const bz_layer_config *l = &c->layer[i];
        if (l->owns_kv) {
            m->caches[m->n_caches++] = (bz_cache_info){.layer = (int32_t)i,
                                                       .kv_heads = l->kv_heads,
                                                       .head_dim = l->head_dim,
                                                       .window = l->sliding ? c->window : 0};
            m->cache_of[i] = (bz_cache){m->n_caches};
        } else {
            m->cache_of[i] = m->cache_of[l->kv_layer];
        }
    }
    return BZ_OK;
}

/* Recording a plan checks all of its shapes, so that a bad file fails when it is opened. */
static bz_status check_plans(const bz_text_model *m, bz_error *err)
{
    bz_plan *plans[6] = {NULL};
    bz_status status = bz_text_record(m, 1, 1, &plans[0], err);
    if (status == BZ_OK && m->config.canvas) {
        status = bz_diffusion_record_encoder(m, 1, &plans[1], err);
    }
    if (status == BZ_OK && m->config.canvas) {
        status = bz_diffusion_record_canvas(m, &plans[2], err);
    }
    if (status == BZ_OK && m->config.canvas) {
        status = bz_diffusion_record_logits(m, &plans[3], err);
    }
    if (status == BZ_OK && m->config.canvas) {
        status = bz_diffusion_record_condition(m, &plans[4], err);
    }
    if (status == BZ_OK && m->assistant) {
        status = bz_assistant_record(m, 2, &plans[5], err);
    }
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        bz_plan_free(plans[i]);
    }
    return status;
}

bz_status bz_text_model_new(bz_text_model *m, const bz_files *files, bz_error *err)
{
    *m = (bz_text_model){0};
    bz_status status = bz_config_read(&m->config, files->main, err);
    if (status == BZ_OK) {
        status = bz_text_weights_bind(&m->weights, &m->config, files, err);
    }
    if (status == BZ_OK) {
        status = number_caches(m, err);
    }
    if (status == BZ_OK) {
        status = bz_assistant_new(&m->assistant, m, files, err);
    }
    if (status == BZ_OK) {
        status = check_plans(m, err);
    }
    if (status != BZ_OK) {
        bz_text_model_free(m);
    }
    return status;
}

void bz_text_set_image_attention(bz_text_model *m, bool whole)
{
    const bool has_ple = m->config.ple_width != 0;
    m->sliding_image = has_ple ? BZ_IMAGE_CAUSAL : whole ? BZ_IMAGE_WHOLE : BZ_IMAGE_TO_END;
    m->full_image = !has_ple && whole ? BZ_IMAGE_WHOLE : BZ_IMAGE_CAUSAL;
}

void bz_text_model_free(bz_text_model *m)
{
    bz_assistant_free(m->assistant);
    bz_text_weights_free(&m->weights);
    bz_config_free(&m->config);
    free(m->caches);
    free(m->cache_of);
    *m = (bz_text_model){0};
}
