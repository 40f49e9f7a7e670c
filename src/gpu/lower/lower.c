/* Plan -> dispatches. The plain form: a step is one kernel, or one per binding where its tensor
 * spans several. Counts depend on the bucket only; rows beyond the pass leave at once. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/lower/builder.h"
#include "gpu/lower/tower.h"

enum { THEN_NOTHING, THEN_ADD, THEN_ADD_SCALE, THEN_ROPE, THEN_MUL }; /* THEN of norm.wgsl */
enum {
    OP_ADD,
    OP_SCALE,
    OP_MUL_VECTOR,
    OP_GEGLU,
    OP_GEGLU_FUSED,
    OP_SOFTCAP,
    OP_TAKE_ROWS,
    OP_RECALL
};                              /* elementwise.wgsl */
enum { MANY_VALUES = 1 << 20 }; /* of elementwise: workgroups of 64 are no longer free then */
enum { MOST_EXPERTS = 1024, MOST_CHOSEN = 64 }; /* of route.wgsl */

uint64_t gpu_place(const bz_schedule *s, bz_tensor t)
{
    return t.id ? s->offset[t.id] + 4ull * bz_plan_tensor(s->plan, t)->column : 0;
}

uint32_t gpu_builder_place(const builder *x, bz_tensor t)
{
    return (uint32_t)(gpu_place(x->s, t) / 4);
}

step_facts gpu_builder_facts(const builder *x, const bz_step *s)
{
    const bz_plan *p = x->s->plan;
    bz_tensor shape = s->out[0].id ? s->out[0] : s->in[0];
    return (step_facts){.in0 = gpu_builder_place(x, s->in[0]),
                        .in0_stride = bz_plan_tensor(p, s->in[0])->stride,
                        .in1 = gpu_builder_place(x, s->in[1]),
                        .in1_stride = bz_plan_tensor(p, s->in[1])->stride,
                        .in2 = gpu_builder_place(x, s->in[2]),
                        .in2_stride = bz_plan_tensor(p, s->in[2])->stride,
                        .out0 = gpu_builder_place(x, s->out[0]),
                        .out0_stride = bz_plan_tensor(p, s->out[0])->stride,
                        .out1 = gpu_builder_place(x, s->out[1]),
                        .out1_stride = bz_plan_tensor(p, s->out[1])->stride,
                        .cols = bz_plan_tensor(p, shape)->cols,
                        .width = s->width,
                        .heads = s->heads,
                        .window = s->window,
                        .experts = s->experts_used,
                        .logits = !bz_plan_tensor(p, shape)->whole_pass,
                        .has_weight = s->w[0].id != 0,
                        .row0 = s->first_row,
                        .both_ways = s->bidirectional,
                        .scale = s->scale,
                        .eps = s->eps};
}

void gpu_builder_add(builder *x, gpu_kernel kernel, bz_type type, gpu_overrides overrides,
                     dispatch d)
{
    bz_schedule *s = x->s;
    if (x->failed) {
        return;
    }
    if (s->n_plain == s->cap) {
        uint32_t cap = s->cap ? s->cap * 2 : 256;
        dispatch *more = realloc(s->plain, cap * sizeof *more);
        if (!more) {
            bz_fail(x->err, BZ_OUT_OF_MEMORY, "No memory to schedule a plan.");
            x->failed = true;
            return;
        }
        s->plain = more;
        s->cap = cap;
    }
    d.kernel = kernel;
    d.type = type;
    d.first_step = (uint32_t)((x->gate ? x->gate : x->step) - s->plan->steps);
    d.steps = x->steps;
    for (uint32_t i = 0; i < x->group->norms.n; i++) {
        const size_t norm = x->group->norms.norm[i];
        for (size_t e = norm;
             norm >= x->group->first + x->steps && e < norm + gpu_fuse_norm_steps(s->plan, norm);
             e++) {
            d.early[d.n_early++] = (uint32_t)e;
        }
    }
    d.pipeline = gpu_pipelines_get(x->b->pipelines, kernel, type, overrides, x->err);
    x->failed = d.pipeline == 0;
    s->plain[s->n_plain++] = d;
}

gpu_binding gpu_builder_vector(const builder *x, bz_weight w)
{
    const gpu_weights *all = &x->b->weights;
    return w.id ? all->pieces[all->first_piece[w.id - 1]].at : (gpu_binding){x->b->nothing, 0, 0};
}

static void elementwise(builder *x, uint32_t op)
{
    dispatch d = {.facts = gpu_builder_facts(x, x->step),
                  .weights = gpu_builder_vector(x, x->step->w[0])};
    const uint32_t each = (uint64_t)d.facts.cols * x->rows > MANY_VALUES ? 8 : 1;
    d.x = divide_up(d.facts.cols, 64 * each);
    d.y = x->rows;
    gpu_overrides o = {{op, each}};
    if (op == OP_GEGLU) {
        o.value[2] = gpu_sums_read(x, x->step->in[0], &d.facts, &d.facts.in0, &d.facts.in0_stride);
        o.value[3] = gpu_sums_read(x, x->step->in[1], &d.facts, &d.facts.in1, &d.facts.in1_stride);
    }
    gpu_builder_add(x, GPU_ELEMENTWISE, BZ_F32, o, d);
}

/* A matrix product or a table, one dispatch per binding. */
static void by_pieces(builder *x, gpu_kernel kernel)
{
    const gpu_weights *ws = &x->b->weights;
    const bz_weight_info *w = bz_weight_of(ws->table, x->step->w[0]);
    uint32_t max = gpu_limits_of(x->b->g)->max_workgroups;
    for (uint32_t i = ws->first_piece[x->step->w[0].id - 1]; i < ws->first_piece[x->step->w[0].id];
         i++) {
        const gpu_piece *piece = &ws->pieces[i];
        dispatch d = {.facts = gpu_builder_facts(x, x->step), .weights = piece->at};
        step_facts *f = &d.facts;
        gpu_overrides overrides = {{0}};
        f->k = (uint32_t)w->ne[0];
        f->first_row = piece->first_row;
        f->row_count = piece->rows;
        f->row_bytes = (uint32_t)gpu_row_bytes(w->type, w->ne[0]);
        switch (kernel) {
        case GPU_EMBED:
            f->slotted = x->step->accepts_soft;
            d.x = divide_up(divide_up(f->cols, 8), 64);
            d.y = x->rows;
            break;
        case GPU_LINEAR_ROW:
        case GPU_LINEAR_ANY:
            /* more threads for longer rows, so that none walks more than a few steps alone */
            overrides = (gpu_overrides){{f->k <= 2048 ? 32 : 64, x->rows}};
            d.x = divide_up(piece->rows, 2 * 128 / overrides.value[0]);
            d.y = divide_up(d.x, max);
            d.x = d.y > 1 ? divide_up(d.x, d.y) : d.x;
            break;
        case GPU_LINEAR_WIDE:
            overrides = (gpu_overrides){{f->k <= 2048 ? 16 : f->k <= 4096 ? 32 : 64, x->rows}};
            d.x = divide_up(piece->rows, 4 * 64 / overrides.value[0]);
            d.y = divide_up(d.x, max);
            d.x = d.y > 1 ? divide_up(d.x, d.y) : d.x;
            break;
        default: /* experts */
            f->cols = (uint32_t)w->ne[1];
            f->slotted = bz_plan_tensor(x->s->plan, x->step->in[0])->cols != w->ne[0];
            d.x = divide_up(w->ne[1], 4);
            d.y = x->rows * x->step->experts_used;
        }
        gpu_builder_add(x, kernel, w->type, overrides, d);
    }
}

static void table_in_file(builder *x)
{
    const bz_weight_info *w = bz_weight_of(x->b->weights.table, x->step->w[0]);
    const gpu_table_shape shape = gpu_table_shape_of(x->b->model->table);
    dispatch d = {.facts = gpu_builder_facts(x, x->step),
                  .weights = shape.at,
                  .extra = {{x->b->slots, 0, 0}},
                  .y = x->rows};
    d.facts.row_count = shape.rows;
    d.facts.row_bytes = shape.row_bytes;
    d.x = divide_up(divide_up(d.facts.cols, 8), 64);
    gpu_builder_add(x, GPU_EMBED_SLOTS, w->type, (gpu_overrides){{0}}, d);
}

/* Does linear_row's way of reading and writing four at a time fit? Pieces are cut at multiples of
 * four too. */
static bool is_even(const builder *x)
{
    const bz_weight_info *w = bz_weight_of(x->b->weights.table, x->step->w[0]);
    step_facts f = gpu_builder_facts(x, x->step);
    bool even = w->ne[0] % 32 == 0 && w->ne[1] % 4 == 0 &&
                (f.in0 | f.in0_stride | f.out0 | f.out0_stride) % 4 == 0;
    for (uint32_t i = x->b->weights.first_piece[x->step->w[0].id - 1];
         i < x->b->weights.first_piece[x->step->w[0].id]; i++) {
        even = even && (x->b->weights.pieces[i].first_row | x->b->weights.pieces[i].rows) % 4 == 0;
    }
    return even;
}

/* A norm and what follows it; `last` is the last step of the fusion, whose output is written. */
static void norm(builder *x, gpu_fusion fusion, const bz_step *last)
{
    const bz_plan *plan = x->s->plan;
    dispatch d = {.facts = gpu_builder_facts(x, x->step),
                  .weights = gpu_builder_vector(x, x->step->w[0]),
                  .extra = {{x->b->nothing, 0, 0}},
                  .y = x->rows};
    uint32_t then = THEN_NOTHING;
    bz_tensor other = BZ_NO_TENSOR;
    switch (fusion) {
    case GPU_FUSE_NORM_ADD:
        then = THEN_ADD;
        other = x->step[1].in[0];
        break;
    case GPU_FUSE_NORM_ADD_SCALE:
        then = THEN_ADD_SCALE;
        other = x->step[1].in[0];
        d.extra[0] = gpu_builder_vector(x, last->w[0]);
        break;
    case GPU_FUSE_NORM_ROPE:
        then = THEN_ROPE;
        other = x->step[1].in[1];
        break;
    case GPU_FUSE_NORM_MUL:
        then = THEN_MUL;
        d.weights = gpu_builder_vector(x, last->w[0]);
        d.facts.has_weight = 1;
        d.facts.scale = last->scale;
        break;
    default: break;
    }
    d.facts.in1 = gpu_builder_place(x, other);
    d.facts.in1_stride = bz_plan_tensor(plan, other)->stride;
    d.facts.out0 = gpu_builder_place(x, last->out[0]);
    d.facts.out0_stride = bz_plan_tensor(plan, last->out[0])->stride;
    d.x = d.facts.cols / x->step->width;
    const uint32_t sums =
        gpu_sums_read(x, x->step->in[0], &d.facts, &d.facts.in0, &d.facts.in0_stride);
    const uint32_t held = sums ? x->step->width : 1;
    gpu_builder_add(x, GPU_NORM, BZ_F32,
                    (gpu_overrides){{then, divide_up(x->step->width, 256), sums, held}}, d);
}

static gpu_kernel linear_kernel(const builder *x)
{
    bz_type type = bz_weight_of(x->b->weights.table, x->step->w[0])->type;
    if (!is_even(x)) {
        return GPU_LINEAR_ANY;
    }
    return type == BZ_Q4_K || type == BZ_Q5_K || type == BZ_Q6_K ? GPU_LINEAR_WIDE : GPU_LINEAR_ROW;
}

static void route(builder *x)
{
    dispatch d = {.facts = gpu_builder_facts(x, x->step), .x = 1, .y = x->rows};
    d.facts.width = bz_plan_tensor(x->s->plan, x->step->in[0])->cols;
    if (d.facts.width > MOST_EXPERTS || d.facts.experts > MOST_CHOSEN) {
        bz_fail(
            x->err, BZ_UNSUPPORTED_MODEL,
            "The model chooses %u of %u experts; on the GPU it may be %d of %d. Run it on the CPU.",
            d.facts.experts, d.facts.width, MOST_CHOSEN, MOST_EXPERTS);
        x->failed = true;
        return;
    }
    const uint32_t sums =
        gpu_sums_read(x, x->step->in[0], &d.facts, &d.facts.in0, &d.facts.in0_stride);
    gpu_builder_add(x, GPU_ROUTE, BZ_F32, (gpu_overrides){{sums, divide_up(d.facts.width, 4)}}, d);
}

static void rope_table(builder *x)
{
    bz_schedule *s = x->s;
    const bz_step *step = x->step;
    if (s->n_ropes == sizeof s->ropes / sizeof *s->ropes) {
        bz_fail(x->err, BZ_UNSUPPORTED_MODEL,
                "A plan with more than %u tables of angles does not run on the GPU.", s->n_ropes);
        x->failed = true;
        return;
    }
    rope_fill *fill = &s->ropes[s->n_ropes++];
    fill->step = step;
    fill->frequency = malloc(step->width / 2 * sizeof *fill->frequency);
    if (!fill->frequency) {
        bz_fail(x->err, BZ_OUT_OF_MEMORY, "No memory for a table of angles.");
        x->failed = true;
        return;
    }
    for (uint32_t i = 0; i < step->width / 2; i++) {
        double f = i < step->rotated_pairs ? pow(step->base, -2.0 * i / step->width) : 0.0;
        if (step->w[0].id) {
            float factor;
            memcpy(&factor, x->b->weight_bytes[step->w[0].id - 1] + 4 * i, sizeof factor);
            f /= (double)factor;
        }
        fill->frequency[i] = (float)f;
    }
}

static void add_step(builder *x)
{
    const bz_plan *plan = x->s->plan;
    const bz_step *s = x->step;
    bz_tensor shape = s->out[0].id ? s->out[0] : s->in[0];
    x->rows = bz_plan_rows_of(plan, shape);
    switch (s->op) {
    case BZ_OP_EMBED:
        if (s->w[0].id == x->b->weights.left_out.id) {
            table_in_file(x);
        } else {
            by_pieces(x, GPU_EMBED);
        }
        break;
    case BZ_OP_LINEAR:
    case BZ_OP_EXPERT_LINEAR:
        if (x->rows > 8) {
            gpu_add_tiles(x);
        } else {
            by_pieces(x, s->op == BZ_OP_LINEAR ? linear_kernel(x) : GPU_EXPERT_LINEAR);
        }
        break;
    case BZ_OP_ADD: elementwise(x, OP_ADD); break;
    case BZ_OP_SCALE: elementwise(x, OP_SCALE); break;
    case BZ_OP_MUL_VECTOR:
        if (plan->tower) {
            gpu_add_tower_step(x);
        } else {
            elementwise(x, OP_MUL_VECTOR);
        }
        break;
    case BZ_OP_GEGLU: elementwise(x, s->in[1].id ? OP_GEGLU : OP_GEGLU_FUSED); break;
    case BZ_OP_SOFTCAP: elementwise(x, OP_SOFTCAP); break;
    case BZ_OP_TAKE_ROWS: elementwise(x, OP_TAKE_ROWS); break;
    case BZ_OP_RMS_NORM: norm(x, GPU_FUSE_NONE, s); break;
    case BZ_OP_ROPE: {
        dispatch d = {.facts = gpu_builder_facts(x, x->step), .y = x->rows};
        d.facts.experts = bz_plan_tensor(plan, s->in[1])->cols / s->width; /* axes */
        d.x = divide_up(d.facts.cols / 2, 64);
        gpu_builder_add(x, GPU_ROPE, BZ_F32, (gpu_overrides){{0}}, d);
        break;
    }
    case BZ_OP_ROUTE: route(x); break;
    case BZ_OP_EXPERT_SUM: {
        dispatch d = {.facts = gpu_builder_facts(x, x->step),
                      .weights = gpu_builder_vector(x, x->step->w[0]),
                      .y = x->rows};
        d.x = divide_up(d.facts.cols, 64);
        gpu_builder_add(x, GPU_EXPERT_SUM, BZ_F32, (gpu_overrides){{0}}, d);
        break;
    }
    case BZ_OP_KV_WRITE: gpu_add_kv_write(x); break;
    case BZ_OP_ATTEND: gpu_add_attend(x, NULL, s); break;
    case BZ_OP_ROPE_TABLE: rope_table(x); break;
    case BZ_OP_READ_KEPT: elementwise(x, OP_RECALL); break;
    case BZ_OP_LOGIT_STATS: gpu_add_judge(x); break;
    case BZ_OP_SOFT_EMBED: gpu_add_soft_embed(x); break;
    case BZ_OP_CUT: break;
    default: gpu_add_tower_step(x); break;
    }
}

/* ---- interface -------------------------------------------------------------------- */

void gpu_release(bz_backend *backend, bz_schedule *s)
{
    gpu_backend *b = (gpu_backend *)(void *)backend;
    if (!s) {
        return;
    }
    for (uint32_t i = 0; i < s->n_ropes; i++) {
        free(s->ropes[i].frequency);
    }
    if (s->list) {
        gpu_list_free(b->g, s->list);
    }
    if (s->facts) {
        gpu_buffer_free(b->g, s->facts);
    }
    free(s->stretches);
    free(s->plain);
    free(s->dispatches);
    free(s->offset);
    free(s);
}

/* The host writes the angles before the pass begins: their places belong to nobody else, before or
 * after. */
static void place_angles(bz_schedule *s)
{
    for (size_t i = 0; i < s->plan->n_steps; i++) {
        uint32_t table = s->plan->steps[i].op == BZ_OP_ROPE_TABLE ? s->plan->steps[i].out[0].id : 0;
        for (uint32_t t = 1; table && t < s->plan->n_tensors; t++) {
            s->offset[t] = s->plan->tensors[t].root == table ? s->arena_bytes : s->offset[t];
        }
        s->arena_bytes += table ? s->plan->tensors[table].bytes : 0;
    }
}

/* Groups first, then places that suit them, then a dispatch or more for each. */
static void build(builder *x)
{
    bz_schedule *s = x->s;
    const bz_plan *plan = s->plan;
    gpu_group *groups = malloc((plan->n_steps + 1) * sizeof *groups);
    uint32_t *group_of = calloc(plan->n_steps + 1, sizeof *group_of);
    bool *early = calloc(plan->n_steps + 1,
                         sizeof *early); /* steps of a group that begins and ends before them */
    x->halved = calloc(plan->n_tensors, sizeof *x->halved);
    s->offset = malloc(plan->n_tensors * sizeof *s->offset);
    const gpu_fuse_rules rules = {.fuse = x->b->fuse,
                                  .few = plan->rows <= 8,
                                  .packed = x->b->packed,
                                  .weights = &x->b->weights,
                                  .max_binding = gpu_limits_of(x->b->g)->max_binding};
    uint32_t n = 0;
    x->failed = true;
    if (!groups || !group_of || !early || !s->offset || !x->halved) {
        bz_fail(x->err, BZ_OUT_OF_MEMORY, "No memory to schedule a plan.");
    } else {
        for (size_t i = 0; i < plan->n_steps;) {
            if (early[i]) { /* a group before has it */
                i++;
                continue;
            }
            groups[n] = plan->tower ? gpu_fuse_tower(&rules, plan, i) : gpu_fuse(&rules, plan, i);
            groups[n].first = i;
            for (uint32_t k = 0; k < groups[n].norms.n; k++) {
                const size_t norm = groups[n].norms.norm[k];
                for (size_t e = norm; e < norm + gpu_fuse_norm_steps(plan, norm); e++) {
                    early[e] = true;
                    group_of[e] = n;
                }
            }
            for (uint32_t k = 0; k < groups[n].count; k++) {
                group_of[i++] = n;
            }
            n++;
        }
        x->failed = bz_plan_place(plan, group_of, s->offset, &s->arena_bytes, x->err) != BZ_OK;
        place_angles(s);
    }
    x->groups = groups;
    x->group_of = group_of;
    gpu_tiles_reserve(x);
    for (uint32_t i = 0; i < n && !x->failed; i++) {
        x->group = &groups[i];
        x->step = plan->steps + groups[i].first;
        x->steps = groups[i].count;
        switch (groups[i].fusion) {
        case GPU_FUSE_NONE: add_step(x); break;
        case GPU_FUSE_PRODUCTS: gpu_add_products(x, &groups[i]); break;
        case GPU_FUSE_NORMS: gpu_add_norms(x, &groups[i]); break;
        case GPU_FUSE_KV: gpu_add_kv_norm(x); break;
        case GPU_FUSE_GATED:
            x->gate = x->step++;
            x->rows = bz_plan_rows_of(plan, x->step->out[0]);
            gpu_add_tiles(x);
            x->step--;
            x->gate = NULL;
            break;
        case GPU_FUSE_ATTEND: gpu_add_attend(x, x->step, x->step + 2); break;
        case GPU_FUSE_NORM_ADD:
        case GPU_FUSE_NORM_ADD_SCALE:
        case GPU_FUSE_NORM_ROPE:
        case GPU_FUSE_NORM_MUL:
            x->rows = bz_plan_rows_of(plan, x->step->out[0]);
            norm(x, groups[i].fusion, x->step + groups[i].count - 1);
            break;
        default: gpu_add_tower_group(x, &groups[i]); break;
        }
        gpu_sums_forget(x);
        gpu_tiles_forget(x);
    }
    free(groups);
    free(group_of);
    free(early);
    free(x->halved);
    x->halved = NULL;
}

bz_status gpu_prepare(bz_backend *backend, const bz_plan *plan, bz_schedule **out, bz_error *err)
{
    gpu_backend *b = (gpu_backend *)(void *)backend;
    if (!plan->tower && plan->rows > GPU_MAX_ROWS) { /* the parameter block has no room for them */
        return bz_fail(err, BZ_BAD_REQUEST,
                       "A pass of %u rows was planned; on the GPU it has at most %d.", plan->rows,
                       GPU_MAX_ROWS);
    }
    bz_schedule *s = calloc(1, sizeof *s);
    bz_error local = {0};
    builder x = {.b = b, .s = s, .err = &local};
    if (!s) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to schedule a plan.");
    }
    s->plan = plan;
    build(&x);
    s->scratch = x.scratch;
    s->side_bytes = x.side_bytes;
    if (x.failed || gpu_expand(b, s, NULL, &local) != BZ_OK ||
        (gpu_chooses(s) && gpu_choose_prepare(b, s, &local) != BZ_OK)) {
        gpu_release(backend, s);
        if (err) {
            *err = local;
        }
        return local.code;
    }
    *out = s;
    return BZ_OK;
}
