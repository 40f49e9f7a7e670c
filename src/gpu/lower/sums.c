/* Sums of splits that are added up where they are read.
 *
 * A product of few tiles shares its sums out to splits (tiles.c), which leave their parts behind
 * the arena. Where one kernel alone reads the product and can add (gpu_fuse_adds), the parts stay
 * until it has run, behind those of other such products; a dispatch between and the tensor's own
 * memory are never touched. Everybody else sees the tensor itself. */
#include "gpu/lower/builder.h"

/* The group that reads all of t, and alone; NULL where there is none. */
static const gpu_group *only_reader(const builder *x, bz_tensor t)
{
    const bz_plan *p = x->s->plan;
    const bz_tensor_info *info = bz_plan_tensor(p, t);
    const gpu_group *reader = NULL;
    if (info->root != t.id || info->kept || t.id == p->output.id) {
        return NULL;
    }
    for (size_t i = (size_t)(x->step - p->steps) + 1; i < p->n_steps && (int32_t)i <= info->last;
         i++) {
        for (size_t k = 0; k < sizeof p->steps[i].in / sizeof *p->steps[i].in; k++) {
            const bz_tensor in = p->steps[i].in[k];
            if (bz_plan_tensor(p, in)->root == t.id) {
                if (in.id != t.id || (reader && reader != &x->groups[x->group_of[i]])) {
                    return NULL;
                }
                reader = &x->groups[x->group_of[i]];
            }
        }
    }
    return reader;
}

static uint64_t bytes_of(const dispatch *sum)
{
    return divide_up(4ull * sum->facts.heads * sum->facts.out1_stride, 64) * 64ull;
}

uint32_t gpu_sums_place(builder *x, uint64_t bytes)
{
    const uint64_t binding = gpu_limits_of(x->b->g)->max_binding, used = x->s->arena_bytes;
    if (x->n_sums && used + x->open_bytes + bytes > binding) {
        gpu_sums_settle(x);
    }
    const uint64_t end = x->open_bytes + bytes;
    x->scratch = end > x->scratch ? end : x->scratch;
    return (uint32_t)((used + x->open_bytes) / 4);
}

void gpu_sums_add(builder *x, bz_tensor t, const dispatch *sum)
{
    const gpu_group *reader =
        x->b->fuse && !x->s->plan->tower && x->n_sums < GPU_MOST_SUMS ? only_reader(x, t) : NULL;
    if (!reader || !gpu_fuse_adds(x->s->plan, reader, t)) {
        gpu_builder_add(x, GPU_SPLIT_SUM, BZ_F32, (gpu_overrides){{0}}, *sum);
        return;
    }
    x->sums[x->n_sums].tensor = t;
    x->sums[x->n_sums].reader = reader;
    x->sums[x->n_sums++].sum = *sum;
    x->open_bytes += bytes_of(sum);
}

void gpu_sums_settle(builder *x)
{
    for (uint32_t i = 0; i < x->n_sums; i++) {
        gpu_builder_add(x, GPU_SPLIT_SUM, BZ_F32, (gpu_overrides){{0}}, x->sums[i].sum);
    }
    x->n_sums = 0;
    x->open_bytes = 0;
}

uint32_t gpu_sums_read(const builder *x, bz_tensor t, step_facts *f, uint32_t *place,
                       uint32_t *stride)
{
    for (uint32_t i = 0; i < x->n_sums; i++) {
        const step_facts *sum = &x->sums[i].sum.facts;
        if (x->sums[i].tensor.id == t.id) {
            *place = sum->out1;
            *stride = sum->cols;
            f->sum_rows = sum->out1_stride / sum->cols;
            return sum->heads;
        }
    }
    return 0;
}

void gpu_sums_forget(builder *x)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < x->n_sums; i++) {
        if (x->sums[i].reader != x->group) {
            x->sums[kept++] = x->sums[i];
        }
    }
    x->n_sums = kept;
    x->open_bytes = kept ? x->open_bytes : 0; /* room is free again when all have been read */
}
