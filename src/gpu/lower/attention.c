/* Attention, and the caches it reads: which kernel takes how many rows, and how positions are
 * shared out. */
#include "gpu/lower/builder.h"

enum {
    SPLITS = 16,      /* of the visible positions, when few rows attend */
    MOST_SPLITS = 4,  /* when many do, and there are less than */
    MANY_TILES = 512, /* workgroups */
    MANY_PIECES = 4   /* of a long cache, each of which has as many */
};

void gpu_add_kv_write(builder *x)
{
    const bz_cache_info *cache = &x->s->plan->caches[x->step->cache.id - 1];
    dispatch d = {.facts = gpu_builder_facts(x, x->step), .cache = x->step->cache.id, .y = x->rows};
    d.facts.cols = cache->kv_heads * cache->head_dim;
    d.x = divide_up(x->b->f32_cache ? d.facts.cols : d.facts.cols / 2, 64);
    gpu_builder_add(x, GPU_KV_WRITE, BZ_F32, (gpu_overrides){{!x->b->f32_cache}}, d);
}

void gpu_add_kv_norm(builder *x)
{
    const bz_step *k = x->step, *rope = k + 1, *v = k + 2, *write = k + 3;
    dispatch d = {.facts = gpu_builder_facts(x, k), .cache = write->cache.id};
    step_facts *f = &d.facts;
    d.extra[0] = gpu_builder_vector(x, k->w[0]);
    d.x = f->kv_heads = x->s->plan->caches[write->cache.id - 1].kv_heads;
    d.y = bz_plan_rows_of(x->s->plan, k->out[0]);
    f->in1 = gpu_builder_place(x, v->in[0]);
    f->in1_stride = bz_plan_tensor(x->s->plan, v->in[0])->stride;
    f->in2 = gpu_builder_place(x, rope->in[1]);
    f->in2_stride = bz_plan_tensor(x->s->plan, rope->in[1])->stride;
    const uint32_t keys = gpu_sums_read(x, k->in[0], f, &f->in0, &f->in0_stride);
    const uint32_t values = gpu_sums_read(x, v->in[0], f, &f->in1, &f->in1_stride);
    uint32_t queries = 0;
    d.extra[1] = gpu_builder_vector(x, BZ_NO_WEIGHT);
    if (x->steps > 4) { /* queries behind them */
        const bz_step *q = k + 4, *turned = k + 5;
        d.extra[1] = gpu_builder_vector(x, q->w[0]);
        d.x += bz_plan_tensor(x->s->plan, q->in[0])->cols / q->width;
        f->in3 = gpu_builder_place(x, q->in[0]);
        f->in3_stride = bz_plan_tensor(x->s->plan, q->in[0])->stride;
        f->out0 = gpu_builder_place(x, turned->out[0]);
        f->out0_stride = bz_plan_tensor(x->s->plan, turned->out[0])->stride;
        queries = gpu_sums_read(x, q->in[0], f, &f->in3, &f->in3_stride);
    }
    gpu_builder_add(x, GPU_KV_NORM, BZ_F32,
                    (gpu_overrides){{!x->b->f32_cache, keys, values, queries}}, d);
}

/* Splits of the visible positions that keep a GPU busy, as far as there is room for what they
 * leave. */
static uint32_t tile_splits(const builder *x, uint32_t groups, const bz_step *step)
{
    const uint64_t binding = gpu_limits_of(x->b->g)->max_binding, used = x->s->arena_bytes;
    const uint64_t left = binding > used ? binding - used : 0,
                   one = 4ull * x->rows * step->heads * (step->width + 4);
    const uint64_t room = left / one / MANY_PIECES,
                   wanted = MANY_TILES / groups < MOST_SPLITS ? MANY_TILES / groups : MOST_SPLITS;
    const uint64_t splits = wanted < room ? wanted : room;
    return splits ? (uint32_t)splits : 1;
}

/* Many rows share what they fetch of the cache; few leave most of a GPU idle unless positions are
 * shared out. */
void gpu_add_attend(builder *x, const bz_step *turn, const bz_step *step)
{
    const bz_cache_info *cache = &x->s->plan->caches[step->cache.id - 1];
    dispatch d = {.facts = gpu_builder_facts(x, step),
                  .cache = step->cache.id,
                  .splits = 1,
                  .x = step->heads};
    step_facts *f = &d.facts;
    gpu_sums_settle(x);
    d.y = x->rows = bz_plan_rows_of(x->s->plan, step->out[0]);
    f->kv_heads = cache->kv_heads;
    f->blocks = (uint32_t)step->image_attention;
    f->out1 = (uint32_t)(x->s->arena_bytes / 4); /* behind everything that was placed */
    const uint32_t per = x->b->f32_cache ? 4 : 8, vectors = step->width / per;
    const bool even = step->width % 64 == 0 && step->width <= 512 &&
                      (vectors & (vectors - 1)) == 0 &&
                      (f->in0 | f->in0_stride | f->out0 | f->out0_stride) % 4 == 0;
    if (x->rows > 8 && even) {
        d.y = divide_up(x->rows, 32);
        d.z = d.splits = tile_splits(x, d.x * d.y, step);
        d.split_rows = x->rows;
        gpu_builder_add(x, GPU_ATTEND_TILE, BZ_F32,
                        (gpu_overrides){{per, step->width, step->width > 256 ? 256 : 128}}, d);
    } else if (x->rows > 8 || step->bidirectional || step->width % 8 || step->width > 1024) {
        gpu_builder_add(x, GPU_ATTEND, BZ_F32, (gpu_overrides){{!x->b->f32_cache}}, d);
    } else {
        if (turn) {
            const bz_step *rope = turn + 1;
            f->eps = turn->eps;
            f->in0 = gpu_builder_place(x, turn->in[0]);
            f->in0_stride = bz_plan_tensor(x->s->plan, turn->in[0])->stride;
            f->in1 = gpu_builder_place(x, rope->in[1]);
            f->in1_stride = bz_plan_tensor(x->s->plan, rope->in[1])->stride;
        }
        d.extra[0] = gpu_builder_vector(x, turn ? turn->w[0] : BZ_NO_WEIGHT);
        uint32_t shares = 16;
        while (shares * vectors > 256) {
            shares /= 2;
        }
        d.splits = SPLITS;
        d.x = step->heads * SPLITS;
        gpu_builder_add(x, GPU_ATTEND_FEW, BZ_F32,
                        (gpu_overrides){{per, SPLITS, step->width, turn != NULL, shares}}, d);
    }
    dispatch gather = {.facts = d.facts,
                       .gathers = d.cache,
                       .splits = d.splits,
                       .split_rows = d.split_rows,
                       .x = step->heads,
                       .y = x->rows};
    gpu_builder_add(x, GPU_COMBINE, BZ_F32, (gpu_overrides){{d.splits}}, gather);
}
