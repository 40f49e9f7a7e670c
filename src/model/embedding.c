/* Records a pass of EmbeddingGemma. The layers are those of text.c. */
#include "model/embedding.h"

#include <math.h>

#include "model/record.h"

void bz_embedding_caches(bz_text_model *m)
{
    const bz_config *c = &m->config;
    for (uint32_t i = 0; i < c->layers; i++) {
        const bz_layer_config *l = &c->layer[i];
        uint32_t k = 0;
        while (k < m->n_caches &&
               (m->caches[k].kv_heads != l->kv_heads || m->caches[k].head_dim != l->head_dim)) {
            k++;
        }
        if (k == m->n_caches) {
            m->caches[m->n_caches++] = (bz_cache_info){
                .layer = (int32_t)i, .kv_heads = l->kv_heads, .head_dim = l->head_dim};
        }
        m->cache_of[i] = (bz_cache){k + 1};
    }
}

/* Per-layer inputs [n][L*P] of EmbeddingGemma 2: the projection of the embeddings x [n][d] alone.
 * As in text.c the factor before the norm is part of its eps. */
static bz_tensor per_layer_inputs(bz_plan *p, const bz_text_model *m, bz_tensor x)
{
    const bz_config *c = &m->config;
    bz_tensor ple = bz_linear(p, x, m->weights.per_layer_model_proj, "ple_model_proj");
    return bz_rms_norm(p, ple, m->weights.per_layer_proj_norm, c->ple_width,
                       c->eps * (float)c->width, "ple");
}

bz_status bz_embedding_record(const bz_text_model *m, uint32_t rows, uint32_t texts, bz_plan **out,
                              bz_error *err)
{
    const bz_config *c = &m->config;
    const bz_text_weights *w = &m->weights;
    bz_plan *p = NULL;
    bz_status status = bz_plan_new(&p, &w->table, m->caches, m->n_caches, rows, texts, err);
    if (status != BZ_OK) {
        return status;
    }
    const bz_ropes rope = bz_record_ropes(p, m);
    bz_tensor x = bz_embed(p, w->token_embd, (float)sqrt(c->width), "embed");
    const bz_tensor ple = c->ple_width ? per_layer_inputs(p, m, x) : BZ_NO_TENSOR;
    for (uint32_t i = 0; i < c->layers; i++) {
        p->layer = (int32_t)i;
        bz_cut(p, "layer");
        x = bz_record_layer(p, m, i, x, ple, &rope, BZ_LAYER_OF_TEXTS);
    }
    p->layer = -1;
    x = bz_rms_norm(p, x, w->output_norm, c->width, c->eps, "final_norm");
    x = bz_mean_rows(p, x, "pooled");
    x = w->dense_2.id ? bz_linear(p, x, w->dense_2, "dense_2") : x;
    x = w->dense_3.id ? bz_linear(p, x, w->dense_3, "dense_3") : x;
    status = bz_plan_finish(p, x, err);
    if (status != BZ_OK) {
        bz_plan_free(p);
        return status;
    }
    *out = p;
    return BZ_OK;
}
