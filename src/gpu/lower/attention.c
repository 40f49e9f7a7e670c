/* Attention and the caches it reads: which kernel computes how many rows, and how the visible
 * positions are split. Called by lower.c and steps.c. */
#include "gpu/lower/builder.h"

enum {
    MAX_TILE_SPLITS = 4, /* of the visible positions, for many rows, */
    TILE_TARGET = 512,   /* target number of workgroups */
    COMBINE_BATCH = 8,   /* parts loaded at once, for few rows */
    CACHE_PIECES = 4     /* of a long cache, each with as many splits, that scratch is kept for */
};

/* Bits of an integer in the cache; 0: it has none. */
static uint32_t cache_bits(const builder *x)
{
    return x->in->cache == BZ_CACHE_Q8 ? 8 : x->in->cache == BZ_CACHE_Q4 ? 4 : 0;
}

void gpu_lower_kv_write(builder *x)
{
    const bz_cache_info *cache = &x->plan->caches[x->step->cache.id - 1];
    const bool f16 = x->in->cache == BZ_CACHE_F16;
    gpu_dispatch d = {
        .params = gpu_params_of(x, x->step), .cache = x->step->cache.id, .y = x->rows};
    if (cache_bits(x)) {
        d.params.attention.width = cache->head_dim;
        d.x = d.params.attention.kv_heads = cache->kv_heads;
        gpu_emit(x, GPU_KV_WRITE_BLOCKS, BZ_F32, (gpu_overrides){{cache_bits(x)}}, d);
        return;
    }
    d.params.cols = cache->kv_heads * cache->head_dim;
    d.x = divide_up(f16 ? d.params.cols / 2 : d.params.cols, 64);
    gpu_emit(x, GPU_KV_WRITE, BZ_F32, (gpu_overrides){{f16}}, d);
}

void gpu_lower_kv(builder *x, const gpu_group *g)
{
    const bz_step *k = x->step, *rope = k + 1, *v = k + 2, *write = k + 3;
    gpu_dispatch d = {.params = gpu_params_of(x, k), .cache = write->cache.id};
    gpu_attention_params *p = &d.params.attention;
    p->width = k->width;
    p->eps = k->eps;
    d.extra[0] = gpu_bind_weight(x, k->w[0]);
    d.x = p->kv_heads = x->plan->caches[write->cache.id - 1].kv_heads;
    d.y = bz_plan_rows_of(x->plan, k->out[0]);
    p->in1 = gpu_offset_of(x, v->in[0]);
    p->in1_stride = gpu_stride_of(x, v->in[0]);
    p->in2 = gpu_offset_of(x, rope->in[1]);
    p->in2_stride = gpu_stride_of(x, rope->in[1]);
    const uint32_t keys =
        gpu_read_partial_sums(x, k->in[0], &p->in0, &p->in0_stride, &p->split_rows);
    const uint32_t values =
        gpu_read_partial_sums(x, v->in[0], &p->in1, &p->in1_stride, &p->split_rows);
    uint32_t queries = 0;
    d.extra[1] = gpu_bind_weight(x, BZ_NO_WEIGHT);
    if (g->count > 4) { /* norm and rope of queries follow */
        const bz_step *q = k + 4, *rotated = k + 5;
        d.extra[1] = gpu_bind_weight(x, q->w[0]);
        d.x += bz_plan_tensor(x->plan, q->in[0])->cols / q->width;
        p->query = gpu_offset_of(x, q->in[0]);
        p->query_stride = gpu_stride_of(x, q->in[0]);
        p->out0 = gpu_offset_of(x, rotated->out[0]);
        p->out0_stride = gpu_stride_of(x, rotated->out[0]);
        queries = gpu_read_partial_sums(x, q->in[0], &p->query, &p->query_stride, &p->split_rows);
    }
    const uint32_t bits = cache_bits(x);
    const uint32_t threads = bits ? 0 : gpu_row_threads(x->in->limits, k->width);
    gpu_emit(x, bits ? GPU_KV_NORM_BLOCKS : GPU_KV_NORM, BZ_F32,
             (gpu_overrides){
                 {bits ? bits : x->in->cache == BZ_CACHE_F16, keys, values, queries, threads}},
             d);
}

/* Splits of the visible positions that keep a GPU busy, as far as the partial results fit. */
static uint32_t tile_splits(const builder *x, uint32_t tiles, const bz_step *step)
{
    const uint64_t one = 4ull * x->rows * step->heads * (step->width + 4);
    const uint64_t fit = gpu_scratch_left(x) / one / CACHE_PIECES,
                   wanted = TILE_TARGET / tiles < MAX_TILE_SPLITS ? TILE_TARGET / tiles
                                                                  : MAX_TILE_SPLITS;
    const uint64_t splits = wanted < fit ? wanted : fit;
    return splits && gpu_splits_positions(x->in->limits) ? (uint32_t)splits : 1;
}

/* Rotates the heads at an offset of the arena, queries or results. */
static void lower_rotate(builder *x, uint32_t at, uint32_t stride, const bz_step *step)
{
    gpu_dispatch d = {.params = gpu_params_of(x, step), .x = step->heads, .y = x->rows};
    d.params.in0 = at;
    d.params.in0_stride = stride;
    d.params.attention.width = step->width;
    gpu_emit(x, GPU_ROTATE, BZ_F32, (gpu_overrides){{0}}, d);
}

/* Many rows of one sequence share what they fetch of the cache; few rows leave most of a GPU idle
 * unless the positions are split. Rows of different sequences have nothing to share. */
void gpu_lower_attend(builder *x, const bz_step *query_norm, const bz_step *step)
{
    const bz_cache_info *cache = &x->plan->caches[step->cache.id - 1];
    gpu_dispatch d = {.params = gpu_params_of(x, step), .cache = step->cache.id, .x = step->heads};
    d.split = (gpu_split){
        .splits = 1, .heads = step->heads, .width = step->width, .window = step->window};
    gpu_attention_params *p = &d.params.attention;
    gpu_flush_partial_sums(x);
    p->width = step->width;
    p->heads = step->heads;
    p->window = step->window;
    p->bidirectional = step->bidirectional;
    p->eps = step->eps;
    d.y = x->rows = bz_plan_rows_of(x->plan, step->out[0]);
    p->kv_heads = cache->kv_heads;
    p->image_attention = (uint32_t)step->image_attention;
    p->out1 = (uint32_t)(x->out->arena_bytes / 4); /* partial results: after the arena */
    const uint32_t per_vector = x->in->cache == BZ_CACHE_F32 ? 4 : 8,
                   vectors = step->width / per_vector, bits = cache_bits(x);
    const bool rotated = x->in->cache == BZ_CACHE_Q4;
    const bool can_tile = step->width % 64 == 0 && step->width <= 512 &&
                          (vectors & (vectors - 1)) == 0 &&
                          (p->in0 | p->in0_stride | p->out0 | p->out0_stride) % 4 == 0;
    const bool by_row = x->rows <= GPU_MAX_VECTOR_ROWS || x->plan->many_sequences;
    bool combined = false; /* always by a dispatch of its own */
    if (!by_row && can_tile) {
        d.y = divide_up(x->rows, 32);
        d.z = d.split.splits = tile_splits(x, d.x * d.y, step);
        d.split.rows = x->rows;
        const uint32_t threads = step->width > 256 ? 256 : 128;
        if (rotated) {
            lower_rotate(x, p->in0, p->in0_stride, step);
        }
        if (bits) {
            gpu_emit(x, bits == 8 ? GPU_ATTEND_TILE_Q8 : GPU_ATTEND_TILE_Q4, BZ_F32,
                     (gpu_overrides){{step->width, threads}}, d);
        } else {
            gpu_emit(x, GPU_ATTEND_TILE, BZ_F32,
                     (gpu_overrides){{per_vector, step->width, threads}}, d);
        }
    } else if (!by_row || step->bidirectional || step->width % 8 || step->width > 1024) {
        gpu_emit(x, bits ? GPU_ATTEND_BLOCKS : GPU_ATTEND, BZ_F32,
                 (gpu_overrides){{bits ? bits : x->in->cache == BZ_CACHE_F16}}, d);
    } else {
        if (query_norm) {
            const bz_step *rope = query_norm + 1;
            p->eps = query_norm->eps;
            p->in0 = gpu_offset_of(x, query_norm->in[0]);
            p->in0_stride = gpu_stride_of(x, query_norm->in[0]);
            p->in1 = gpu_offset_of(x, rope->in[1]);
            p->in1_stride = gpu_stride_of(x, rope->in[1]);
        }
        d.extra[0] = gpu_bind_weight(x, query_norm ? query_norm->w[0] : BZ_NO_WEIGHT);
        const uint32_t threads =
            rotated ? GPU_ROW_THREADS : gpu_split_threads(x->in->limits, vectors);
        uint32_t positions = 16; /* that a workgroup computes at once */
        while (positions * vectors > threads) {
            positions /= 2;
        }
        /* 0: by the rows of the cache */
        p->splits = d.split.splits = rotated || gpu_splits_positions(x->in->limits) ? 0 : 1;
        d.split.rows = x->rows;
        d.split.reader_combines = x->fused->sum_reader[step->out[0].id] != 0;
        x->partial = d;
        x->partial_tensor = step->out[0];
        const uint32_t subgroup = subgroup_of(x->in->limits);
        if (bits) {
            gpu_emit(
                x, bits == 8 ? GPU_ATTEND_SPLIT_Q8 : GPU_ATTEND_SPLIT_Q4, BZ_F32,
                (gpu_overrides){{step->width, query_norm != NULL, positions, subgroup, threads}},
                d);
        } else {
            gpu_emit(x, GPU_ATTEND_SPLIT, BZ_F32,
                     (gpu_overrides){{per_vector, step->width, query_norm != NULL, positions,
                                      subgroup, threads}},
                     d);
        }
        combined = true;
    }
    gpu_dispatch combine = {
        .params = d.params, .combines = d.cache, .split = d.split, .x = step->heads, .y = x->rows};
    const uint32_t batch = d.split.splits ? d.split.splits : COMBINE_BATCH;
    const bool rotates = rotated && combined;
    const uint32_t threads =
        rotates ? GPU_ROW_THREADS : gpu_row_threads(x->in->limits, step->width);
    gpu_emit(x, GPU_COMBINE, BZ_F32, (gpu_overrides){{batch, rotates, threads}}, combine);
    if (rotated && !combined) { /* there may be nothing to combine */
        lower_rotate(x, p->out0, p->out0_stride, step);
    }
}
