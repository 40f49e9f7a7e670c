/* Records what adapters add to the products of the model. */
#include "model/record.h"

/* NULL: nothing. */
static const bz_low_rank *of(const bz_text_model *m, bz_weight w)
{
    const bz_low_ranks *all = m->adapters;
    return all && w.id && w.id <= all->n && all->of[w.id - 1].b.id ? &all->of[w.id - 1] : NULL;
}

bz_tensor bz_low_rank_input(bz_plan *p, const bz_text_model *m, bz_tensor x, const bz_weight *w,
                            uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const bz_low_rank *l = of(m, w[i]);
        if (l) {
            return bz_linear(p, x, l->a, "lora_a");
        }
    }
    return BZ_NO_TENSOR;
}

bz_tensor bz_adapt_linear(bz_plan *p, const bz_text_model *m, bz_tensor y, bz_tensor low,
                          bz_weight w)
{
    const bz_low_rank *l = of(m, w);
    if (!l) {
        return y;
    }
    low = bz_columns(p, low, l->first, bz_weight_size(p, l->b, 1, "lora_b"));
    return bz_add_low_rank(p, y, low, BZ_NO_TENSOR, l->b, 1, l->scale, "lora_b");
}

bz_tensor bz_adapted_linear(bz_plan *p, const bz_text_model *m, bz_tensor x, bz_weight w,
                            const char *name)
{
    bz_tensor low = bz_low_rank_input(p, m, x, &w, 1);
    return bz_adapt_linear(p, m, bz_linear(p, x, w, name), low, w);
}

bz_tensor bz_adapt_experts(bz_plan *p, const bz_text_model *m, bz_tensor y, bz_tensor x,
                           bz_tensor ids, bz_weight w, uint32_t used)
{
    const bz_low_rank *l = of(m, w);
    if (!l) {
        return y;
    }
    bz_tensor low = bz_expert_linear(p, x, ids, l->a, used, "lora_a");
    return bz_add_low_rank(p, y, low, ids, l->b, used, l->scale, "lora_b");
}

bz_tensor bz_adapt_embed(bz_plan *p, const bz_text_model *m, bz_tensor y, bz_weight table,
                         float scale, bool soft)
{
    const bz_low_rank *l = of(m, table);
    if (!l) {
        return y;
    }
    bz_tensor low = bz_embed(p, l->a, 1.0f, "lora_a");
    y = bz_add_low_rank(p, y, low, BZ_NO_TENSOR, l->b, 1, scale * l->scale, "lora_b");
    if (soft) {
        bz_last_accepts_soft(p);
    }
    return y;
}
