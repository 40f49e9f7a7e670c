/* The audio tower: a conformer over mel features. A row holds four frames of 10 ms and becomes one
 * soft token.
 *
 *   h = in(relu(LN(conv(relu(LN(conv(features)))))))
 *   for each layer:
 *     h = h + 0.5 RMS(down(silu(up RMS(h))))
 *     h = h + RMS(out(attention over the last 12 rows(RMS(h))))
 *     h = h + pw2(silu(RMS(conv over 5 rows(GLU(pw1 RMS(h))))))
 *     h = h + 0.5 RMS(down(silu(up RMS(h))))
 *     h = RMS(h)
 *   soft token = project(RMS(out h + bias))
 */
#include <math.h>

#include "model/clipped.h"

#define EPS 1e-6f
enum { FRAMES_PER_ROW = 4 };

/* h [n][d] -> h + 0.5 FFN(h) [n][d] */
static bz_tensor half_ffn(bz_plan *p, bz_tensor h, bz_weight norm, const bz_clipped *up,
                          const bz_clipped *down, bz_weight post, uint32_t d)
{
    bz_tensor f = bz_rms_norm(p, h, norm, d, EPS, "ffn_norm");
    f = bz_silu(p, bz_record_clipped(p, f, up, "ffn_up"), "ffn_act");
    f = bz_rms_norm(p, bz_record_clipped(p, f, down, "ffn_down"), post, d, EPS, "ffn_post_norm");
    return bz_add_scaled(p, h, f, 0.5f, "ffn_residual");
}

/* x [n][d] -> [n][d]; sinusoids: [window][d] */
static bz_tensor attention(bz_plan *p, const bz_audio *a, const bz_audio_layer *w, bz_tensor x,
                           bz_tensor sinusoids)
{
    /* The reference scales q and k by these constants instead of scores by 1/sqrt(head size). */
    const float q_scale = (float)(1.0 / sqrt(a->head_dim) / log(2.0)),
                k_scale = (float)(log1p(exp(1.0)) / log(2.0));
    bz_tensor qkv[3];
    bz_record_products(p, x, 3, (const bz_clipped *const[]){&w->q, &w->k, &w->v},
                       (const char *const[]){"q_proj", "k_proj", "v_proj"}, qkv);
    bz_tensor relative_k = bz_linear(p, sinusoids, w->relative_k, "relative_k");
    bz_tensor q =
        bz_mul_vector(p, bz_clip_out(p, qkv[0], &w->q), w->per_dim_scale, q_scale, "q_scaled");
    bz_tensor k = bz_multiply(p, bz_clip_out(p, qkv[1], &w->k), k_scale, "k_scaled");
    bz_tensor v = bz_clip_out(p, qkv[2], &w->v);
    bz_tensor weights =
        bz_local_scores(p, q, k, relative_k, a->heads, BZ_AUDIO_WINDOW, 50.0f, "attn_weights");
    return bz_record_clipped(p, bz_local_sum(p, weights, v, a->heads, BZ_AUDIO_WINDOW, "attn"),
                             &w->out, "attn_out");
}

/* h [n][d] -> [n][d] */
static bz_tensor light_conv(bz_plan *p, const bz_audio_layer *w, bz_tensor h, uint32_t d)
{
    bz_tensor x = bz_rms_norm(p, h, w->conv_norm, d, EPS, "conv_pre_norm");
    x = bz_glu(p, bz_record_clipped(p, x, &w->pw1, "conv_pw1"), "conv_glu");
    x = bz_conv_time(p, x, w->conv_dw, "conv_dw");
    x = bz_silu(p, bz_rms_norm(p, x, w->norm_conv, d, EPS, "conv_norm"), "conv_act");
    return bz_record_clipped(p, x, &w->pw2, "conv_pw2");
}

/* h [n][d] -> [n][d] */
static bz_tensor layer(bz_plan *p, const bz_audio *a, const bz_audio_layer *w, bz_tensor h,
                       bz_tensor sinusoids)
{
    const uint32_t d = a->width;
    h = half_ffn(p, h, w->ffn_norm, &w->up, &w->down, w->ffn_post_norm, d);
    bz_tensor o =
        attention(p, a, w, bz_rms_norm(p, h, w->attn_norm, d, EPS, "attn_norm"), sinusoids);
    h = bz_add(p, h, bz_rms_norm(p, o, w->attn_post_norm, d, EPS, "attn_post_norm"), 1.0f,
               "attn_residual");
    h = bz_add(p, h, light_conv(p, w, h, d), 1.0f, "conv_residual");
    h = half_ffn(p, h, w->ffn_norm_1, &w->up_1, &w->down_1, w->ffn_post_norm_1, d);
    return bz_rms_norm(p, h, w->norm_out, d, EPS, "layer");
}

/* -> [n][columns of a->out] */
static bz_tensor with_layers(bz_plan *p, const bz_audio *a)
{
    const uint32_t first = bz_weight_size(p, a->conv0, 1, "conv_0");
    const uint32_t second = bz_weight_size(p, a->conv1, 1, "conv_1");
    bz_tensor sinusoids = bz_sinusoids(p, a->width, 10000.0, "sinusoids");
    bz_tensor x = bz_input_rows(p, FRAMES_PER_ROW * a->bins, "features");
    x = bz_conv(p, x, a->conv0, FRAMES_PER_ROW, a->bins, 1, "conv_0");
    x = bz_relu(p, bz_layer_norm(p, x, a->conv0_norm, first, EPS, "conv_0_norm"), "conv_0_act");
    x = bz_conv(p, x, a->conv1, FRAMES_PER_ROW / 2, a->bins / 2, first, "conv_1");
    x = bz_relu(p, bz_layer_norm(p, x, a->conv1_norm, second, EPS, "conv_1_norm"), "conv_1_act");
    bz_tensor h = bz_linear(p, x, a->in, "subsample");
    for (uint32_t i = 0; i < a->layers; i++) {
        p->layer = (int32_t)i;
        bz_cut(p, "layer");
        h = layer(p, a, &a->layer[i], h, sinusoids);
    }
    p->layer = -1;
    return bz_add_vector(p, bz_linear(p, h, a->out, "out"), a->out_bias, 1.0f, "encoder_out");
}

bz_status bz_audio_record(const bz_towers *t, uint32_t rows, bz_plan **out, bz_error *err)
{
    const bz_audio *a = &t->audio;
    const bool layers = a->kind == BZ_TOWER_LAYERS;
    bz_plan *p = NULL;
    bz_status status = bz_plan_new(&p, &t->table, NULL, 0, rows, layers ? BZ_AUDIO_WINDOW : 1, err);
    if (status != BZ_OK) {
        return status;
    }
    p->tower = true;
    const uint32_t in = bz_weight_size(p, a->project, 0, "soft_tokens");
    bz_tensor x = layers ? with_layers(p, a) : bz_input_rows(p, in, "samples");
    x = bz_rms_norm(p, x, BZ_NO_WEIGHT, in, EPS, "project_norm");
    x = bz_linear(p, x, a->project, "soft_tokens");
    status = bz_plan_finish(p, x, err);
    if (status != BZ_OK) {
        bz_plan_free(p);
        return status;
    }
    *out = p;
    return BZ_OK;
}
