/* Records what adapters add to the products of the model. */
#include "model/record.h"

typedef struct low_ranks {
    const bz_low_rank *first, *end;
} low_ranks;

static low_ranks of(const bz_text_model *m, bz_weight w)
{
    const bz_low_ranks *all = m->adapters;
    if (!all || !w.id || w.id > all->n) {
        return (low_ranks){NULL, NULL};
    }
    return (low_ranks){all->list + all->first[w.id - 1], all->list + all->first[w.id]};
}

bz_tensor bz_adapt_linear(bz_plan *p, const bz_text_model *m, bz_tensor y, bz_tensor x, bz_weight w)
{
    const low_ranks all = of(m, w);
    for (const bz_low_rank *l = all.first; l < all.end; l++) {
        bz_tensor low = bz_linear(p, x, l->a, "lora_a");
        y = bz_add_low_rank(p, y, low, BZ_NO_TENSOR, l->b, 1, l->scale, "lora_b");
    }
    return y;
}

bz_tensor bz_adapt_experts(bz_plan *p, const bz_text_model *m, bz_tensor y, bz_tensor x,
                           bz_tensor ids, bz_weight w, uint32_t used)
{
    const low_ranks all = of(m, w);
    for (const bz_low_rank *l = all.first; l < all.end; l++) {
        bz_tensor low = bz_expert_linear(p, x, ids, l->a, used, "lora_a");
        y = bz_add_low_rank(p, y, low, ids, l->b, used, l->scale, "lora_b");
    }
    return y;
}

bz_tensor bz_adapt_embed(bz_plan *p, const bz_text_model *m, bz_tensor y, bz_weight table,
                         float scale, bool soft)
{
    const low_ranks all = of(m, table);
    for (const bz_low_rank *l = all.first; l < all.end; l++) {
        bz_tensor low = bz_embed(p, l->a, 1.0f, "lora_a");
        y = bz_add_low_rank(p, y, low, BZ_NO_TENSOR, l->b, 1, scale * l->scale, "lora_b");
        if (soft) {
            bz_last_accepts_soft(p);
        }
    }
    return y;
}
