/* The steps of a diffusion model's canvas that other models have not: kernels/canvas. */
#include "gpu/builder.h"

enum {
    STRETCH = 2048, /* logits of a workgroup of judge_scan */
    SOFT_ROWS = 64, /* of a tile of soft_embed */
    SOFT_COLUMNS = 128,
    SOFT_DEEP = 16,    /* tokens in workgroup memory at once */
    MANY_GROUPS = 512, /* workgroups to share the vocabulary out to */
    LEAST_TOKENS = 512 /* of a share */
};

/* Rows of logits, and facts that both halves of a step need. */
static dispatch begin(builder *x)
{
    dispatch d = {.facts = gpu_builder_facts(x, x->step)};
    const bz_tensor_info *z = bz_plan_tensor(x->s->plan, x->step->in[0]);
    x->rows = bz_plan_rows_of(x->s->plan, x->step->in[0]);
    d.facts.logits = !z->whole_pass;
    d.facts.k = z->cols;
    d.facts.row0 = x->step->row;
    d.facts.out1 = (uint32_t)(x->s->arena_bytes / 4); /* behind everything that was placed */
    return d;
}

static void reserve(builder *x, uint64_t values)
{
    x->scratch = 4 * values > x->scratch ? 4 * values : x->scratch;
}

void gpu_add_judge(builder *x)
{
    dispatch d = begin(x);
    d.facts.parts = divide_up(d.facts.k, STRETCH);
    reserve(x, 4ull * x->rows * d.facts.parts);
    d.x = d.facts.parts;
    d.y = x->rows;
    gpu_builder_add(x, GPU_JUDGE_SCAN, BZ_F32, (gpu_overrides){{0}}, d);
    d.x = 1;
    gpu_builder_add(x, GPU_JUDGE_PICK, BZ_F32, (gpu_overrides){{0}}, d);
}

void gpu_add_soft_embed(builder *x)
{
    const gpu_weights *ws = &x->b->weights;
    const bz_weight_info *w = bz_weight_of(ws->table, x->step->w[0]);
    const uint32_t first = ws->first_piece[x->step->w[0].id - 1], behind = ws->first_piece[x->step->w[0].id];
    const uint64_t binding = gpu_limits_of(x->b->g)->max_binding, used = x->s->arena_bytes;
    dispatch d = begin(x);
    step_facts *f = &d.facts;
    f->cols = (uint32_t)w->ne[0];
    f->row_bytes = (uint32_t)gpu_row_bytes(w->type, w->ne[0]);
    f->out1_stride = x->rows * f->cols;
    d.x = divide_up(f->cols, SOFT_COLUMNS);
    d.y = divide_up(x->rows, SOFT_ROWS);
    /* as many shares as keep a GPU busy, as far as there is room for their sums */
    const uint64_t room = binding > used ? (binding - used) / 4 / f->out1_stride : 0;
    uint32_t shares = divide_up(MANY_GROUPS, d.x * d.y);
    shares = shares + (behind - first) > room
                 ? (room > behind - first ? (uint32_t)room - (behind - first) : 1)
                 : shares;
    f->stretch = divide_up(divide_up(w->ne[1], shares), SOFT_DEEP) * SOFT_DEEP;
    f->stretch = f->stretch < LEAST_TOKENS ? LEAST_TOKENS : f->stretch;
    for (uint32_t i = first; i < behind; i++) {
        dispatch piece = d;
        piece.weights = ws->pieces[i].at;
        piece.facts.first_row = ws->pieces[i].first_row;
        piece.facts.row_count = ws->pieces[i].rows;
        piece.facts.first_part = f->parts;
        piece.z = divide_up(ws->pieces[i].rows, f->stretch);
        f->parts += piece.z;
        gpu_builder_add(x, GPU_SOFT_EMBED, w->type, (gpu_overrides){{0}}, piece);
    }
    reserve(x, (uint64_t)f->parts * f->out1_stride);
    dispatch sum = {.facts = *f, .x = divide_up(f->cols, 64), .y = x->rows};
    gpu_builder_add(x, GPU_SOFT_SUM, BZ_F32, (gpu_overrides){{0}}, sum);
}
