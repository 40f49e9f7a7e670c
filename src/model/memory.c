/* Predicts memory from the recorded plans and the table of caches. */
#include "model/memory.h"

#include "model/diffusion.h"
#include "plan/print.h"

static uint64_t cache_row_bytes(const bz_cache_info *c, bz_cache_type type)
{
    return 2ull * c->kv_heads * bz_cache_bytes(type, c->head_dim); /* a key and a value */
}

uint64_t bz_memory_cache(const bz_text_model *m, bz_cache_type type, uint32_t context,
                         uint32_t chunk)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < m->n_caches; i++) {
        const bz_cache_info *c = &m->caches[i];
        uint64_t rows = c->window ? (uint64_t)c->window + chunk - 1 : context;
        total += rows * cache_row_bytes(c, type);
    }
    return total;
}

static uint64_t snapshot_bytes(const bz_text_model *m, bz_cache_type type)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < m->n_caches; i++) {
        const bz_cache_info *c = &m->caches[i];
        total += c->window ? (uint64_t)(c->window - 1) * cache_row_bytes(c, type) : 0;
    }
    return total;
}

bz_status bz_memory_predict(bz_memory *memory, const bz_text_model *m, bz_cache_type type,
                            uint32_t chunk, bz_error *err)
{
    const bz_text_weights *w = &m->weights;
    bz_plan *decode = NULL, *prefill = NULL;
    *memory = (bz_memory){.chunk = chunk, .snapshot_bytes = snapshot_bytes(m, type)};
    const bool canvas = m->config.canvas;
    bz_status status = canvas ? bz_diffusion_record_canvas(m, &decode, err)
                              : bz_text_record(m, 1, 1, &decode, err);
    if (status == BZ_OK) {
        status = canvas ? bz_diffusion_record_encoder(m, chunk, &prefill, err)
                        : bz_text_record(m, chunk, 1, &prefill, err);
    }
    if (status == BZ_OK) {
        for (uint32_t i = 0; i < w->table.n; i++) {
            memory->weight_bytes += w->table.info[i].size;
        }
        if (w->output.id != w->token_embd.id) { /* else every token reads all of it as the head */
            memory->table_bytes += bz_weight_of(&w->table, w->token_embd)->size;
        }
        if (w->per_layer_token_embd.id) {
            memory->table_bytes += bz_weight_of(&w->table, w->per_layer_token_embd)->size;
        }
        memory->token_bytes = bz_plan_count(decode).weight_bytes;
        memory->arena_bytes =
            prefill->arena_bytes > decode->arena_bytes ? prefill->arena_bytes : decode->arena_bytes;
    }
    bz_plan_free(decode);
    bz_plan_free(prefill);
    return status;
}
