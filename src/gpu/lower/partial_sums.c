/* Partial sums of split-K products.
 *
 * A product of few tiles splits its sums over k into several workgroups (tiles.c), which write
 * partial sums after the arena. If one group alone reads the product and its kernel can add
 * (gpu_fused.sum_reader), they stay pending there until that group has run, and the product itself
 * is never written. Otherwise a dispatch adds them up at once. */
#include "gpu/lower/builder.h"

/* In the dispatch that adds up: out1 is the offset of the partial sums, out1_stride the values of
 * one of them. */
static uint64_t bytes_of(const gpu_dispatch *sum)
{
    return divide_up(4ull * sum->params.product.splits * sum->params.out1_stride, 64) * 64ull;
}

uint32_t gpu_place_partial_sums(builder *x, uint64_t bytes)
{
    const uint64_t used = x->out->arena_bytes;
    if (x->n_pending && used + x->pending_bytes + bytes > x->in->limits->max_binding) {
        gpu_flush_partial_sums(x);
    }
    gpu_reserve_scratch(x, x->pending_bytes + bytes);
    return (uint32_t)((used + x->pending_bytes) / 4);
}

void gpu_add_partial_sums(builder *x, bz_tensor t, const gpu_dispatch *sum)
{
    const uint32_t reader = x->fused->sum_reader[t.id];
    if (!reader || x->n_pending == GPU_MAX_PENDING_SUMS) {
        gpu_emit(x, GPU_SPLIT_SUM, BZ_F32, (gpu_overrides){{0}}, *sum);
        return;
    }
    x->pending[x->n_pending].tensor = t;
    x->pending[x->n_pending].reader = &x->fused->groups[reader - 1];
    x->pending[x->n_pending++].sum = *sum;
    x->pending_bytes += bytes_of(sum);
}

void gpu_flush_partial_sums(builder *x)
{
    for (uint32_t i = 0; i < x->n_pending; i++) {
        gpu_emit(x, GPU_SPLIT_SUM, BZ_F32, (gpu_overrides){{0}}, x->pending[i].sum);
    }
    x->n_pending = 0;
    x->pending_bytes = 0;
}

uint32_t gpu_read_partial_sums(const builder *x, bz_tensor t, uint32_t *offset, uint32_t *stride,
                               uint32_t *split_rows)
{
    for (uint32_t i = 0; i < x->n_pending; i++) {
        const gpu_product_params *sum = &x->pending[i].sum.params.product;
        if (x->pending[i].tensor.id == t.id) {
            *offset = sum->out1;
            *stride = sum->cols;
            *split_rows = sum->out1_stride / sum->cols;
            return sum->splits;
        }
    }
    return 0;
}

void gpu_release_partial_sums(builder *x)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < x->n_pending; i++) {
        if (x->pending[i].reader != x->group) {
            x->pending[kept++] = x->pending[i];
        }
    }
    x->n_pending = kept;
    x->pending_bytes = kept ? x->pending_bytes : 0; /* reused when all have been read */
}
