/* The steps of a diffusion model's canvas that other models have not: kernels/canvas. */
#include "gpu/lower/builder.h"

enum {
    STRETCH = 2048,   /* logits of a workgroup of judge_scan */
    SOFT_COUNTS = 80, /* of a stretch: PAIRS of kernels/canvas/soft.wgsl */
    LISTED_PART = 8, /* 1/8 of the vocabulary has room in the list, per row in the mean. Beyond that
                        the whole table is taken, whose product does about so many tokens in the
                        time of a listed one (docs/SPEED.md) */
    LIST_SHARES = 24,     /* of a row's listed tokens, at most */
    GATHER_COLUMNS = 32,  /* of a thread of soft_gather */
    GATHER_THREADS = 128, /* at most */
    SOFT_ROWS = 64,       /* of a tile of soft_embed */
    SOFT_COLUMNS = 128,
    SOFT_DEEP = 16,    /* tokens in workgroup memory at once */
    MANY_GROUPS = 512, /* workgroups to share the vocabulary out to */
    LEAST_TOKENS = 512 /* of a share */
};

/* Part of a row's sum that may be left out: the mean moves by that part of the mean of what is left
 * out, in which little is left but what all rows of the table have in common. Relative errors with
 * 2^-16, for normal, long-tailed and sharp distributions over 262,144 tokens: up to 1.2e-6 where
 * they have nothing in common, 1.2e-5 where that is a third of a row's size, and half of that
 * behind the norm that follows, which takes away what is a mere factor. (Dividing by the sum of
 * what is kept: 1.4e-5, 1.3e-5, and the same behind the norm.) */
static const float LEFT_OUT_EXACT = 0x1p-16f, LEFT_OUT_ROUNDED = 0x1p-12f;

/* Rows of logits, and facts that both halves of a step need. */
static dispatch begin(builder *x)
{
    dispatch d = {.facts = gpu_builder_facts(x, x->step)};
    const bz_tensor_info *z = bz_plan_tensor(x->s->plan, x->step->in[0]);
    gpu_sums_settle(x);
    x->rows = bz_plan_rows_of(x->s->plan, x->step->in[0]);
    d.facts.logits = !z->whole_pass;
    d.facts.k = z->cols;
    d.facts.row0 = x->step->first_row;
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

static uint64_t fours(uint64_t n)
{
    return (n + 3) / 4 * 4;
}

/* Memory of soft_embed behind the arena, in values: notes, the list, then the shares' sums. */
typedef struct soft_room {
    uint64_t notes, list, most; /* most: values that are left for sums */
} soft_room;

/* Lists are for distributions that such a part of the vocabulary holds, or less where there is no
 * room. */
static soft_room rooms(const builder *x, const step_facts *f)
{
    const uint64_t binding = gpu_limits_of(x->b->g)->max_binding, used = x->s->arena_bytes;
    const uint64_t left = binding > used ? (binding - used) / 4 : 0,
                   stretches = divide_up(f->k, STRETCH);
    soft_room r = {.notes = fours(1 + x->rows * (3 + stretches * (2 + SOFT_COUNTS))),
                   .list = fours((uint64_t)x->rows * divide_up(f->k, LISTED_PART))};
    if (r.notes + r.list > left / 2) {
        r.list = left / 2 > r.notes ? (left / 2 - r.notes) / 8 * 4 : 0;
    }
    r.most = left > r.notes + r.list ? left - r.notes - r.list : 0;
    return r;
}

/* Sums of the listed tokens, or of all: one kernel after the other looks whether it is its turn. */
static void add_shares(builder *x, gpu_kernel kernel, gpu_overrides overrides, dispatch d,
                       uint32_t tokens, uint32_t *parts)
{
    const gpu_weights *ws = &x->b->weights;
    const bz_weight w = x->step->w[0];
    for (uint32_t i = ws->first_piece[w.id - 1]; i < ws->first_piece[w.id]; i++) {
        dispatch piece = d;
        piece.weights = ws->pieces[i].at;
        piece.facts.first_row = ws->pieces[i].first_row;
        piece.facts.row_count = ws->pieces[i].rows;
        piece.facts.first_part = *parts;
        piece.z = tokens ? divide_up(ws->pieces[i].rows, tokens) : d.z;
        *parts += piece.z;
        gpu_builder_add(x, kernel, bz_weight_of(ws->table, w)->type, overrides, piece);
    }
}

/* Does the kernel fit that takes the whole table and reads and writes four values at a time? */
static bool is_even(const builder *x, const step_facts *f)
{
    const gpu_weights *ws = &x->b->weights;
    uint32_t all = f->in0 | f->in0_stride | f->in2 | f->out1;
    for (uint32_t i = ws->first_piece[x->step->w[0].id - 1]; i < ws->first_piece[x->step->w[0].id];
         i++) {
        all |= ws->pieces[i].first_row | ws->pieces[i].rows;
    }
    return f->cols % 16 == 0 && all % 4 == 0;
}

void gpu_add_soft_embed(builder *x)
{
    const gpu_weights *ws = &x->b->weights;
    const bz_weight_info *w = bz_weight_of(ws->table, x->step->w[0]);
    const uint32_t pieces =
        ws->first_piece[x->step->w[0].id] - ws->first_piece[x->step->w[0].id - 1];
    const bz_tensor_info *z = bz_plan_tensor(x->s->plan, x->step->in[0]);
    if (z->last >
        (int32_t)(x->step - x->s->plan->steps)) { /* logits become exponentials where they are */
        bz_fail(x->err, BZ_BAD_REQUEST,
                "The GPU can read logits no more behind soft_embed (step %s).", x->step->name);
        x->failed = true;
        return;
    }
    dispatch d = begin(x);
    step_facts *f = &d.facts;
    const soft_room room = rooms(x, f);
    f->eps = x->b->packed ? LEFT_OUT_ROUNDED : LEFT_OUT_EXACT;
    f->in2 = f->out1;
    f->in2_stride = (uint32_t)(f->in2 + room.notes);
    f->heads = (uint32_t)room.list;
    f->out1 = (uint32_t)(f->in2_stride + room.list);
    f->cols = (uint32_t)w->ne[0];
    f->row_bytes = (uint32_t)gpu_row_bytes(w->type, w->ne[0]);
    f->out1_stride = x->rows * f->cols;
    /* as many shares as keep a GPU busy, as far as there is room for their sums */
    const uint32_t sums = room.most / f->out1_stride > UINT32_MAX
                              ? UINT32_MAX
                              : (uint32_t)(room.most / f->out1_stride);
    f->experts = sums / pieces < LIST_SHARES ? sums / pieces ? sums / pieces : 1 : LIST_SHARES;

    d.y = x->rows;
    d.x = divide_up(f->k, STRETCH);
    gpu_builder_add(x, GPU_SOFT_WEIGH, BZ_F32, (gpu_overrides){{0}}, d);
    d.x = 1;
    gpu_builder_add(x, GPU_SOFT_CUT, BZ_F32, (gpu_overrides){{0}}, d);
    d.y = 1;
    gpu_builder_add(x, GPU_SOFT_PLACE, BZ_F32, (gpu_overrides){{0}}, d);
    d.y = x->rows;
    d.x = divide_up(f->k, STRETCH);
    gpu_builder_add(x, GPU_SOFT_LIST, BZ_F32, (gpu_overrides){{0}}, d);
    const uint32_t threads = 2 * divide_up(f->cols, 2 * GATHER_COLUMNS);
    d.x = divide_up(threads, GATHER_THREADS);
    d.z = f->experts;
    add_shares(x, f->cols % (2 * GATHER_COLUMNS) ? GPU_SOFT_GATHER_ANY : GPU_SOFT_GATHER,
               (gpu_overrides){{divide_up(divide_up(threads, d.x), 32) * 32}}, d, 0, &f->kv_heads);

    d.x = divide_up(f->cols, SOFT_COLUMNS);
    d.y = divide_up(x->rows, SOFT_ROWS);
    uint32_t shares = divide_up(MANY_GROUPS, d.x * d.y);
    shares = shares + pieces > sums ? (sums > pieces ? sums - pieces : 1) : shares;
    f->stretch = divide_up(divide_up(w->ne[1], shares), SOFT_DEEP) * SOFT_DEEP;
    f->stretch = f->stretch < LEAST_TOKENS ? LEAST_TOKENS : f->stretch;
    add_shares(x, is_even(x, f) ? GPU_SOFT_EMBED : GPU_SOFT_EMBED_ANY, (gpu_overrides){{0}}, d,
               f->stretch, &f->parts);

    const uint64_t parts = f->parts > f->kv_heads ? f->parts : f->kv_heads;
    reserve(x, room.notes + room.list + parts * f->out1_stride);
    dispatch sum = {.facts = *f, .x = divide_up(f->cols, 64), .y = x->rows};
    gpu_builder_add(x, GPU_SOFT_SUM, BZ_F32, (gpu_overrides){{0}}, sum);
}
