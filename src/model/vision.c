/* The vision tower.
 *
 *   h = patch(pixels) + place(x) + place(y)
 *   for each layer:
 *     h = h + RMS(out(attention of all over all(RMS(h))))      heads turned by x in one half, by y
 * in the other h = h + RMS(down(gelu(gate RMS(h)) * (up RMS(h)))) z = mean of 3 x 3 patches *
 * sqrt(D), standardised where the file says so soft token = project(RMS(z))
 *
 * Models without a tower (12B) have norms around one product instead. */
#include <math.h>

#include "model/clipped.h"

#define EPS    1e-6f /* of every RMS norm; some files have a wrong number here */
#define LN_EPS 1e-5f

static bz_tensor layer(bz_plan *p, const bz_vision *v, const bz_vision_layer *w, bz_tensor h,
                       bz_tensor turn)
{
    const uint32_t d = v->width, hd = v->head_dim;
    bz_tensor a = bz_rms_norm(p, h, w->ln1, d, EPS, "ln1");
    bz_tensor qkv[3], both[2];
    bz_record_products(p, a, 3, (const bz_clipped *const[]){&w->q, &w->k, &w->v},
                       (const char *const[]){"q_proj", "k_proj", "v_proj"}, qkv);
    bz_tensor q = bz_rms_norm(p, bz_clip_out(p, qkv[0], &w->q), w->q_norm, hd, EPS, "q_norm");
    q = bz_rope(p, q, turn, hd / 2, "q_rope");
    bz_tensor k = bz_rms_norm(p, bz_clip_out(p, qkv[1], &w->k), w->k_norm, hd, EPS, "k_norm");
    k = bz_rope(p, k, turn, hd / 2, "k_rope");
    bz_tensor u = bz_rms_norm(p, bz_clip_out(p, qkv[2], &w->v), BZ_NO_WEIGHT, hd, EPS, "v_norm");
    bz_tensor o = bz_attend_all(p, q, k, u, v->heads, hd, "attn");
    o = bz_record_clipped(p, o, &w->out, "attn_out");
    o = bz_rms_norm(p, o, w->attn_post_norm, d, EPS, "attn_post_norm");
    h = bz_add(p, h, o, 1.0f, "attn_residual");

    bz_tensor b = bz_rms_norm(p, h, w->ln2, d, EPS, "ln2");
    bz_record_products(p, b, 2, (const bz_clipped *const[]){&w->gate, &w->up},
                       (const char *const[]){"ffn_gate", "ffn_up"}, both);
    bz_tensor gate = bz_clip_out(p, both[0], &w->gate), up = bz_clip_out(p, both[1], &w->up);
    bz_tensor f = bz_geglu(p, gate, up, "ffn_act");
    f = bz_record_clipped(p, f, &w->down, "ffn_down");
    f = bz_rms_norm(p, f, w->ffn_post_norm, d, EPS, "ffn_post_norm");
    h = bz_add(p, h, f, 1.0f, "layer");
    return w->out_scale.id ? bz_scale(p, h, w->out_scale, "layer") : h;
}

static bz_tensor with_layers(bz_plan *p, const bz_vision *v)
{
    bz_tensor turn = bz_rope_table_2d(p, v->head_dim / 2, 100.0, "rope");
    bz_tensor h = bz_input_rows(p, 3 * v->side * v->side, "pixels");
    h = bz_linear(p, h, v->patch, "patch");
    h = bz_position_embed(p, h, v->place, "embed");
    for (uint32_t i = 0; i < v->layers; i++) {
        p->layer = (int32_t)i;
        bz_cut(p, "layer");
        h = layer(p, v, &v->layer[i], h, turn);
    }
    p->layer = -1;
    bz_tensor z =
        bz_pool_patches(p, h, 3, (float)sqrt(v->width), v->std_bias.id ? "pool" : "pooled");
    if (v->std_bias.id && v->std_scale.id) {
        z = bz_add_vector(p, z, v->std_bias, -1.0f, "std_bias");
        z = bz_mul_vector(p, z, v->std_scale, 1.0f, "pooled");
    }
    return z;
}

static bz_tensor layer_norm(bz_plan *p, bz_tensor x, bz_weight w, bz_weight bias, const char *name)
{
    const uint32_t n = (uint32_t)bz_weight_of(p->weights, w)->ne[0];
    return bz_add_vector(p, bz_layer_norm(p, x, w, n, LN_EPS, "layer_norm"), bias, 1.0f, name);
}

static bz_tensor without_layers(bz_plan *p, const bz_vision *v)
{
    bz_tensor x = bz_input_rows(p, 3 * v->side * v->side, "pixels");
    x = layer_norm(p, x, v->norm1, v->norm1_bias, "patch_norm_1");
    x = bz_add_vector(p, bz_linear(p, x, v->patch, "patch"), v->bias, 1.0f, "patch_bias");
    x = layer_norm(p, x, v->norm2, v->norm2_bias, "patch_norm_2");
    x = bz_position_embed(p, x, v->place, "embed");
    return layer_norm(p, x, v->norm3, v->norm3_bias, "patch_norm_3");
}

bz_status bz_vision_record(const bz_towers *t, uint32_t rows, uint32_t out_rows, bz_plan **out,
                           bz_error *err)
{
    const bz_vision *v = &t->vision;
    bz_plan *p = NULL;
    bz_status status = bz_plan_new(&p, &t->table, NULL, 0, rows, out_rows, err);
    if (status != BZ_OK) {
        return status;
    }
    p->tower = true;
    bz_tensor z = v->kind == BZ_TOWER_LAYERS ? with_layers(p, v) : without_layers(p, v);
    z = bz_rms_norm(p, z, BZ_NO_WEIGHT, v->width, EPS, "project_norm");
    z = bz_record_clipped(p, z, &v->project, "soft_tokens");
    status = bz_plan_finish(p, z, err);
    if (status != BZ_OK) {
        bz_plan_free(p);
        return status;
    }
    *out = p;
    return BZ_OK;
}
