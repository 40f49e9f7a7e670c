/* The vision tower. Rows are patches of 16 x 16 pixels.
 *
 *   h = patch(pixels) + position(x) + position(y)
 *   for each layer:
 *     h = h + RMS(out(attention over all patches(RMS(h))))
 *     h = h + RMS(down(gelu(gate RMS(h)) * (up RMS(h))))
 *   z = sqrt(d) * mean of 3 x 3 patches; (z - std_bias) * std_scale where the file has them
 *   soft token = project(RMS(z))
 *
 * Rope rotates the first half of a head by x and the second by y. Models without a tower (12B)
 * project patches of 48 x 48 pixels: one product between layer norms. */
#include <math.h>

#include "model/clipped.h"

#define EPS    1e-6f /* of every RMS norm; the key in some files is wrong */
#define LN_EPS 1e-5f

/* h [n][d] -> [n][d]; angles: [n][2 * head_dim / 2] */
static bz_tensor layer(bz_plan *p, const bz_vision *v, const bz_vision_layer *w, bz_tensor h,
                       bz_tensor angles)
{
    const uint32_t d = v->width, hd = v->head_dim;
    bz_tensor a = bz_rms_norm(p, h, w->ln1, d, EPS, "ln1");
    bz_tensor qkv[3], both[2];
    bz_record_products(p, a, 3, (const bz_clipped *const[]){&w->q, &w->k, &w->v},
                       (const char *const[]){"q_proj", "k_proj", "v_proj"}, qkv);
    bz_tensor q = bz_rms_norm(p, bz_clip_out(p, qkv[0], &w->q), w->q_norm, hd, EPS, "q_norm");
    q = bz_rope(p, q, angles, hd / 2, "q_rope");
    bz_tensor k = bz_rms_norm(p, bz_clip_out(p, qkv[1], &w->k), w->k_norm, hd, EPS, "k_norm");
    k = bz_rope(p, k, angles, hd / 2, "k_rope");
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

/* -> [m][d] */
static bz_tensor with_layers(bz_plan *p, const bz_vision *v)
{
    bz_tensor angles = bz_rope_table_2d(p, v->head_dim / 2, 100.0, "rope");
    bz_tensor h = bz_input_rows(p, 3 * v->side * v->side, "pixels");
    h = bz_linear(p, h, v->patch, "patch");
    h = bz_position_embed(p, h, v->position, "embed");
    for (uint32_t i = 0; i < v->layers; i++) {
        p->layer = (int32_t)i;
        bz_cut(p, "layer");
        h = layer(p, v, &v->layer[i], h, angles);
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
    const uint32_t n = bz_weight_size(p, w, 0, name);
    return bz_add_vector(p, bz_layer_norm(p, x, w, n, LN_EPS, "layer_norm"), bias, 1.0f, name);
}

/* -> [n][d] */
static bz_tensor without_layers(bz_plan *p, const bz_vision *v)
{
    bz_tensor x = bz_input_rows(p, 3 * v->side * v->side, "pixels");
    x = layer_norm(p, x, v->norm1, v->norm1_bias, "patch_norm_1");
    x = bz_add_vector(p, bz_linear(p, x, v->patch, "patch"), v->bias, 1.0f, "patch_bias");
    x = layer_norm(p, x, v->norm2, v->norm2_bias, "patch_norm_2");
    x = bz_position_embed(p, x, v->position, "embed");
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
