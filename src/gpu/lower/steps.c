/* A step of a text model alone: one dispatch, or one per piece of its weights. Norms with what
 * follows them are here too, since they are the same kernel. Called by lower.c for each group. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/lower/builder.h"

enum { AFTER_NOTHING, AFTER_ADD, AFTER_ADD_SCALE, AFTER_ROPE, AFTER_MUL }; /* AFTER of norm.wgsl */
enum {
    OP_ADD,
    OP_SCALE,
    OP_MUL_VECTOR,
    OP_GEGLU,
    OP_GEGLU_FUSED,
    OP_SOFTCAP,
    OP_TAKE_ROWS,
    OP_READ_KEPT,
    OP_MULTIPLY,
    OP_MEAN_ROWS,
    OP_CONCAT
};                                                        /* OP of elementwise.wgsl */
enum { TOP_THREADS = 64 };                                /* of top, one for each value */
enum { EACH_RUN = 64, EACH_ROWS = 4, EACH_OUTPUTS = 64 }; /* of linear_each, of a workgroup */
enum { SEVERAL_PER_THREAD = 1 << 20 };        /* values: with more, a thread computes several */
enum { MAX_EXPERTS = 1024, MAX_CHOSEN = 64 }; /* of route.wgsl */

static void elementwise(builder *x, uint32_t op)
{
    gpu_dispatch d = {.params = gpu_params_of(x, x->step),
                      .weights = gpu_bind_weight(x, x->step->w[0])};
    gpu_params *p = &d.params;
    p->norm.width = x->step->width;
    p->norm.scale = x->step->scale;
    p->norm.first_wanted = x->step->first_row;
    const uint32_t each = (uint64_t)p->cols * x->rows > SEVERAL_PER_THREAD ? 8 : 1;
    d.x = divide_up(p->cols, 64 * each);
    d.y = x->rows;
    gpu_overrides o = {{op, each}};
    if (op == OP_GEGLU) {
        o.value[2] =
            gpu_read_partial_sums(x, x->step->in[0], &p->in0, &p->in0_stride, &p->norm.split_rows);
        o.value[3] =
            gpu_read_partial_sums(x, x->step->in[1], &p->in1, &p->in1_stride, &p->norm.split_rows);
    }
    gpu_emit(x, GPU_ELEMENTWISE, BZ_F32, o, d);
}

/* ---- products of few rows, tables ------------------------------------------------------------ */

/* Folds x workgroups beyond the limit into y. */
static void fold(const builder *x, gpu_dispatch *d)
{
    d->y = divide_up(d->x, x->in->limits->max_workgroups);
    d->x = d->y > 1 ? divide_up(d->x, d->y) : d->x;
}

/* A matrix product of few rows: one dispatch per piece. */
static void lower_pieces(builder *x, gpu_kernel kernel)
{
    const gpu_pieces pieces = gpu_pieces_of(x->in->weights, x->step->w[0]);
    const bz_weight_info *w = bz_weight_of(x->in->weights->table, x->step->w[0]);
    const uint32_t k = (uint32_t)w->ne[0];
    for (uint32_t i = 0; i < pieces.n; i++) {
        const gpu_piece *piece = &pieces.piece[i];
        gpu_dispatch d = {.params = gpu_params_of(x, x->step), .weights = gpu_bind_piece(piece)};
        gpu_product_params *p = &d.params.product;
        gpu_overrides overrides = {{0}};
        p->k = k;
        p->first_row = piece->first_row;
        p->row_count = piece->rows;
        p->row_bytes = (uint32_t)gpu_row_bytes(w->type, w->ne[0]);
        switch (kernel) {
        case GPU_LINEAR_ROW:
        case GPU_LINEAR_ANY:
            /* more threads for longer rows: each walks a few steps only */
            overrides = (gpu_overrides){{k <= 2048 ? 32 : 64, x->rows}};
            d.x = divide_up(piece->rows, 2 * 128 / overrides.value[0]);
            fold(x, &d);
            break;
        case GPU_LINEAR_FLOAT: /* a product of few outputs needs more workgroups */
            overrides = (gpu_overrides){
                {piece->rows < 1024 ? 64 : 32, x->rows, k, subgroup_of(x->in->limits)}};
            d.x = divide_up(piece->rows, 256 / overrides.value[0]);
            fold(x, &d);
            break;
        case GPU_LINEAR_EACH:
        case GPU_LINEAR_EACH_32:
            overrides = (gpu_overrides){{x->rows > 1 ? EACH_ROWS : 1, k}};
            d.x = divide_up(piece->rows, EACH_OUTPUTS);
            fold(x, &d);
            d.z = divide_up(x->rows, overrides.value[0]);
            break;
        case GPU_LINEAR_WIDE:
            overrides = (gpu_overrides){{k <= 2048 ? 16 : k <= 4096 ? 32 : 64, x->rows}};
            d.x = divide_up(piece->rows, 4 * 64 / overrides.value[0]);
            fold(x, &d);
            break;
        case GPU_LINEAR_LISTED:
            d.x = divide_up(p->cols, 4);
            fold(x, &d);
            d.z = x->rows;
            break;
        default: /* GPU_EXPERT_LINEAR */
            p->cols = (uint32_t)w->ne[1];
            p->slots = x->step->experts_used;
            p->input_per_slot = bz_plan_tensor(x->plan, x->step->in[0])->cols != w->ne[0];
            d.x = divide_up(w->ne[1], 4);
            d.y = x->rows * x->step->experts_used;
        }
        gpu_emit(x, kernel, w->type, overrides, d);
    }
}

static void embed(builder *x)
{
    const gpu_pieces pieces = gpu_pieces_of(x->in->weights, x->step->w[0]);
    const bz_weight_info *w = bz_weight_of(x->in->weights->table, x->step->w[0]);
    for (uint32_t i = 0; i < pieces.n; i++) {
        const gpu_piece *piece = &pieces.piece[i];
        gpu_dispatch d = {
            .params = gpu_params_of(x, x->step), .weights = gpu_bind_piece(piece), .y = x->rows};
        gpu_embed_params *p = &d.params.embed;
        p->first_row = piece->first_row;
        p->row_count = piece->rows;
        p->row_bytes = (uint32_t)gpu_row_bytes(w->type, w->ne[0]);
        p->skip_soft = x->step->accepts_soft;
        p->scale = x->step->scale;
        p->in0 += x->step->width;
        d.x = divide_up(divide_up(p->cols, 8), 64);
        gpu_emit(x, x->step->in[0].id ? GPU_EMBED_BEST : GPU_EMBED, w->type, (gpu_overrides){{0}},
                 d);
    }
}

static void best(builder *x)
{
    gpu_dispatch d = {.params = gpu_params_of(x, x->step), .x = 1, .y = 1};
    d.params.draft.vocab = bz_plan_tensor(x->plan, x->step->in[0])->cols;
    d.params.draft.draft = x->step->width;
    d.params.out0 += x->step->width;
    gpu_emit(x, GPU_BEST, BZ_F32, (gpu_overrides){{x->step->in[1].id != 0}}, d);
}

static void top(builder *x)
{
    gpu_dispatch d = {.params = gpu_params_of(x, x->step), .z = x->rows};
    d.params.draft.vocab = bz_plan_tensor(x->plan, x->step->in[0])->cols;
    d.x = divide_up(d.params.draft.vocab, TOP_THREADS);
    fold(x, &d);
    gpu_emit(x, GPU_TOP, BZ_F32, (gpu_overrides){{0}}, d);
}

static void list_rows(builder *x)
{
    const bz_weight_info *w = bz_weight_of(x->in->weights->table, x->step->w[0]);
    if (gpu_pieces_of(x->in->weights, x->step->w[0]).n != 1) {
        gpu_lower_fail(x, BZ_UNSUPPORTED_MODEL,
                       "The tensor %s is larger than this GPU binds at once. Run the model on the "
                       "CPU.",
                       w->name);
        return;
    }
    gpu_dispatch d = {.params = gpu_params_of(x, x->step),
                      .weights = gpu_bind_weight(x, x->step->w[0]),
                      .z = x->rows};
    d.params.draft.vocab = (uint32_t)(w->ne[0] * w->ne[1]);
    d.params.draft.row_values = (uint32_t)w->ne[0];
    d.params.draft.value_words = bz_type_of((uint32_t)w->type)->block_bytes / 4;
    d.x = divide_up(d.params.cols, 64);
    fold(x, &d);
    gpu_emit(x, GPU_LIST_ROWS, BZ_F32, (gpu_overrides){{0}}, d);
}

/* embed from a table whose rows are fetched from the file */
static void embed_from_file(builder *x)
{
    const bz_weight_info *w = bz_weight_of(x->in->weights->table, x->step->w[0]);
    gpu_dispatch d = {.params = gpu_params_of(x, x->step),
                      .weights = {GPU_BOUND_WEIGHT, x->in->table.at},
                      .extra = {{.kind = GPU_BOUND_SLOTS}},
                      .y = x->rows};
    d.params.embed.row_count = x->in->table.rows;
    d.params.embed.row_bytes = x->in->table.row_bytes;
    d.params.embed.scale = x->step->scale;
    d.x = divide_up(divide_up(d.params.cols, 8), 64);
    gpu_emit(x, GPU_EMBED_SLOTS, w->type, (gpu_overrides){{0}}, d);
}

/* Can linear_row read and write vec4s? Pieces must be cut at multiples of four too. */
static bool is_vec4_aligned(const builder *x)
{
    const bz_weight_info *w = bz_weight_of(x->in->weights->table, x->step->w[0]);
    const gpu_pieces pieces = gpu_pieces_of(x->in->weights, x->step->w[0]);
    const gpu_params p = gpu_params_of(x, x->step);
    bool aligned = w->ne[0] % 32 == 0 && w->ne[1] % 4 == 0 &&
                   (p.in0 | p.in0_stride | p.out0 | p.out0_stride) % 4 == 0;
    for (uint32_t i = 0; i < pieces.n; i++) {
        aligned = aligned && (pieces.piece[i].first_row | pieces.piece[i].rows) % 4 == 0;
    }
    return aligned;
}

static bool is_each(gpu_kernel kernel)
{
    return kernel == GPU_LINEAR_EACH || kernel == GPU_LINEAR_EACH_32;
}

static gpu_kernel linear_kernel(const builder *x)
{
    const bz_weight_info *w = bz_weight_of(x->in->weights->table, x->step->w[0]);
    if (!is_vec4_aligned(x)) {
        return GPU_LINEAR_ANY;
    }
    if (gpu_has_each(x->in->limits)) {
        return w->ne[0] % EACH_RUN ? GPU_LINEAR_EACH_32 : GPU_LINEAR_EACH;
    }
    return gpu_kernel_has_type(GPU_LINEAR_FLOAT, w->type)  ? GPU_LINEAR_FLOAT
           : gpu_kernel_has_type(GPU_LINEAR_WIDE, w->type) ? GPU_LINEAR_WIDE
                                                           : GPU_LINEAR_ROW;
}

/* ---- norms ------------------------------------------------------------------------------------
 */

void gpu_lower_norm(builder *x, const bz_step *last)
{
    const bz_step *s = x->step;
    gpu_dispatch d = {.params = gpu_params_of(x, s),
                      .weights = gpu_bind_weight(x, s->w[0]),
                      .extra = {{.kind = GPU_BOUND_EMPTY}}};
    gpu_params *p = &d.params;
    p->norm.width = s->width;
    p->norm.has_weight = s->w[0].id != 0;
    p->norm.scale = s->scale;
    p->norm.eps = s->eps;
    uint32_t after = AFTER_NOTHING;
    bz_tensor other = BZ_NO_TENSOR;
    switch (x->group->fusion) {
    case GPU_FUSE_NORM_ADD:
        after = AFTER_ADD;
        other = s[1].in[0];
        break;
    case GPU_FUSE_NORM_ADD_SCALE:
        after = AFTER_ADD_SCALE;
        other = s[1].in[0];
        d.extra[0] = gpu_bind_weight(x, last->w[0]);
        break;
    case GPU_FUSE_NORM_ROPE:
        after = AFTER_ROPE;
        other = s[1].in[1];
        break;
    case GPU_FUSE_NORM_MUL:
        after = AFTER_MUL;
        d.weights = gpu_bind_weight(x, last->w[0]);
        p->norm.has_weight = 1;
        p->norm.scale = last->scale;
        break;
    default: break;
    }
    p->in1 = gpu_offset_of(x, other);
    p->in1_stride = gpu_stride_of(x, other);
    p->out0 = gpu_offset_of(x, last->out[0]);
    p->out0_stride = gpu_stride_of(x, last->out[0]);
    d.x = p->cols / s->width;
    d.y = x->rows = bz_plan_rows_of(x->plan, s->out[0]);
    const uint32_t sums =
        gpu_read_partial_sums(x, s->in[0], &p->in0, &p->in0_stride, &p->norm.split_rows);
    const uint32_t held = sums ? s->width : 1, /* values in workgroup memory */
        threads = gpu_row_threads(x->in->limits, s->width);
    gpu_emit(x, GPU_NORM, BZ_F32,
             (gpu_overrides){{after, divide_up(s->width, threads), sums, held, threads}}, d);
}

/* ---- the others -------------------------------------------------------------------------------
 */

static void rope(builder *x)
{
    gpu_dispatch d = {.params = gpu_params_of(x, x->step), .y = x->rows};
    d.params.attention.width = x->step->width;
    d.params.attention.axes = bz_plan_tensor(x->plan, x->step->in[1])->cols / x->step->width;
    d.x = divide_up(d.params.cols / 2, 64);
    gpu_emit(x, GPU_ROPE, BZ_F32, (gpu_overrides){{0}}, d);
}

static void route(builder *x)
{
    gpu_dispatch d = {.params = gpu_params_of(x, x->step), .x = 1, .y = x->rows};
    gpu_expert_params *p = &d.params.expert;
    p->experts = bz_plan_tensor(x->plan, x->step->in[0])->cols;
    p->slots = x->step->experts_used;
    if (p->experts > MAX_EXPERTS || p->slots > MAX_CHOSEN) {
        gpu_lower_fail(x, BZ_UNSUPPORTED_MODEL,
                       "The model chooses %u of %u experts; the GPU supports up to %d of %d. Run "
                       "it on the CPU.",
                       p->slots, p->experts, MAX_CHOSEN, MAX_EXPERTS);
        return;
    }
    const uint32_t sums =
        gpu_read_partial_sums(x, x->step->in[0], &p->in0, &p->in0_stride, &p->split_rows);
    gpu_emit(x, GPU_ROUTE, BZ_F32, (gpu_overrides){{sums, divide_up(p->experts, 4)}}, d);
}

static void expert_sum(builder *x)
{
    gpu_dispatch d = {.params = gpu_params_of(x, x->step),
                      .weights = gpu_bind_weight(x, x->step->w[0]),
                      .y = x->rows};
    d.params.expert.has_weight = x->step->w[0].id != 0;
    d.x = divide_up(d.params.cols, 64);
    gpu_emit(x, GPU_EXPERT_SUM, BZ_F32, (gpu_overrides){{x->step->experts_used}}, d);
}

/* No dispatch: the host computes the angles. */
static void rope_table(builder *x)
{
    gpu_lowered *l = x->out;
    const bz_step *step = x->step;
    if (l->n_ropes == GPU_MAX_ROPE_TABLES) {
        gpu_lower_fail(x, BZ_UNSUPPORTED_MODEL,
                       "A plan with more than %u rope tables does not run on the GPU.", l->n_ropes);
        return;
    }
    gpu_rope_table *table = &l->ropes[l->n_ropes++];
    table->step = step;
    table->frequency = malloc(step->width / 2 * sizeof *table->frequency);
    if (!table->frequency) {
        gpu_lower_fail(x, BZ_OUT_OF_MEMORY, "No memory for a rope table.");
        return;
    }
    for (uint32_t i = 0; i < step->width / 2; i++) {
        double f = i < step->rotated_pairs ? pow(step->base, -2.0 * i / step->width) : 0.0;
        if (step->w[0].id) {
            float factor;
            memcpy(&factor, x->in->host_weights[step->w[0].id - 1] + 4 * i, sizeof factor);
            f /= (double)factor;
        }
        table->frequency[i] = (float)f;
    }
}

void gpu_lower_step(builder *x)
{
    const bz_step *s = x->step;
    x->rows = bz_plan_rows_of(x->plan, s->out[0].id ? s->out[0] : s->in[0]);
    switch (s->op) {
    case BZ_OP_EMBED:
        if (s->w[0].id == x->in->weights->in_file.id) {
            embed_from_file(x);
        } else {
            embed(x);
        }
        break;
    case BZ_OP_LINEAR:
    case BZ_OP_EXPERT_LINEAR:
        if (s->op == BZ_OP_LINEAR && is_each(linear_kernel(x))) {
            lower_pieces(x, linear_kernel(x));
        } else if (x->rows > GPU_MAX_VECTOR_ROWS) {
            gpu_lower_tiles(x);
        } else {
            lower_pieces(x, s->op == BZ_OP_LINEAR ? linear_kernel(x) : GPU_EXPERT_LINEAR);
        }
        break;
    case BZ_OP_ADD: elementwise(x, OP_ADD); break;
    case BZ_OP_SCALE: elementwise(x, OP_SCALE); break;
    case BZ_OP_MUL_VECTOR:
        if (x->plan->tower) {
            gpu_lower_tower_step(x);
        } else {
            elementwise(x, s->w[0].id ? OP_MUL_VECTOR : OP_MULTIPLY);
        }
        break;
    case BZ_OP_GEGLU: elementwise(x, s->in[1].id ? OP_GEGLU : OP_GEGLU_FUSED); break;
    case BZ_OP_SOFTCAP: elementwise(x, OP_SOFTCAP); break;
    case BZ_OP_TAKE_ROWS: elementwise(x, OP_TAKE_ROWS); break;
    case BZ_OP_MEAN_ROWS: elementwise(x, OP_MEAN_ROWS); break;
    case BZ_OP_READ_KEPT: elementwise(x, OP_READ_KEPT); break;
    case BZ_OP_CONCAT: elementwise(x, OP_CONCAT); break;
    case BZ_OP_BEST: best(x); break;
    case BZ_OP_TOP: top(x); break;
    case BZ_OP_LIST_ROWS: list_rows(x); break;
    case BZ_OP_LINEAR_LISTED: lower_pieces(x, GPU_LINEAR_LISTED); break;
    case BZ_OP_RMS_NORM: gpu_lower_norm(x, s); break;
    case BZ_OP_ROPE: rope(x); break;
    case BZ_OP_ROUTE: route(x); break;
    case BZ_OP_EXPERT_SUM: expert_sum(x); break;
    case BZ_OP_ADD_LOW_RANK: gpu_lower_low_ranks(x, 1); break;
    case BZ_OP_KV_WRITE: gpu_lower_kv_write(x); break;
    case BZ_OP_ATTEND: gpu_lower_attend(x, NULL, s); break;
    case BZ_OP_ROPE_TABLE: rope_table(x); break;
    case BZ_OP_LOGIT_STATS: gpu_lower_logit_stats(x); break;
    case BZ_OP_SOFT_EMBED: gpu_lower_soft_embed(x); break;
    case BZ_OP_CUT: break;
    default: gpu_lower_tower_step(x); break;
    }
}
