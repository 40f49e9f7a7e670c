/* Products of many rows: tiles of rows by outputs, in 8 bits where wanted and where the weights are
 * integers (kernels/linear_tile8.wgsl), else in f32 (kernels/linear_tile.wgsl, linear_short.wgsl).
 * Rows of experts are grouped by expert first.
 *
 * The side buffer holds what only these kernels read: the table of experts, then the rows of one
 * tensor in 8 bits, then those of tensors that another kernel made so. */
#include "gpu/lower/matrix.h"

enum {
    LEAST_ROWS = 32, /* of a tile */
    FLOAT_STEP = 16, /* values of k at once */
    SHORT_STEP = 64,
    INTEGER_STEP = 64,
    LEAST_SPLIT = 256, /* values of k */
    MOST_SPLITS = 8,
    FEW_GROUPS = 16, /* a router: shares may be that much smaller and more */
    TINY_SPLIT = 64,
    MANY_SPLITS = 32
};

/* How a product is cut into workgroups. */
typedef struct tile_kind {
    gpu_kernel kernel;
    uint32_t rows, outs, step; /* step: values of k in workgroup memory at once */
    uint32_t few, many;        /* fewer workgroups than that: k is shared out to so many */
} tile_kind;

enum { GATE_NONE, GATE_TWO, GATE_ONE }; /* GATE of quantize.wgsl */

static uint32_t most_tiles(const builder *x, const bz_step *step, uint32_t tile_rows)
{
    uint64_t experts = bz_weight_of(x->b->weights.table, step->w[0])->ne[2],
             pairs = (uint64_t)x->s->plan->rows * step->experts_used;
    return divide_up(pairs, tile_rows) + (uint32_t)(experts < pairs ? experts : pairs);
}

/* Vectors of rows in 8 bits: integers, then scales. */
static uint32_t eights_of(uint32_t rows, uint32_t k, uint32_t inputs)
{
    return 5 * rows * inputs * divide_up(k, INTEGER_STEP);
}

void gpu_tiles_reserve(builder *x)
{
    for (size_t i = 0; i < x->s->plan->n_steps; i++) {
        const bz_step *s = &x->s->plan->steps[i];
        if (s->op == BZ_OP_EXPERT_LINEAR) {
            uint32_t need = 1 + most_tiles(x, s, LEAST_ROWS) +
                            divide_up((uint64_t)x->s->plan->rows * s->experts_used, 4);
            x->table = need > x->table ? need : x->table;
        }
        if (s->op == BZ_OP_LINEAR || s->op == BZ_OP_EXPERT_LINEAR) {
            const uint32_t cols = bz_plan_tensor(x->s->plan, s->in[0])->cols,
                           k = (uint32_t)bz_weight_of(x->b->weights.table, s->w[0])->ne[0];
            const uint32_t eights = eights_of(bz_plan_rows_of(x->s->plan, s->out[0]), k, cols / k);
            x->eights = eights > x->eights ? eights : x->eights;
        }
    }
    x->side_bytes = 16ull * (x->table + 1);
}

/* The choice of experts as a table of tiles, once for all products that use it. */
static void group_pairs(builder *x, uint32_t tile_rows)
{
    dispatch d = {.facts = gpu_builder_facts(x, x->step), .side = true, .x = 1, .y = 1};
    if (x->grouped.id == x->step->in[1].id && x->grouped_rows == tile_rows) {
        return;
    }
    x->grouped = x->step->in[1];
    x->grouped_rows = tile_rows;
    d.facts.in0 = d.facts.in1;
    d.facts.in0_stride = d.facts.in1_stride;
    d.facts.width = (uint32_t)bz_weight_of(x->b->weights.table, x->step->w[0])->ne[2];
    d.facts.out0 = 0;
    d.facts.out1 = 1 + most_tiles(x, x->step, tile_rows);
    const uint32_t words = divide_up(x->s->plan->rows, 32);
    gpu_builder_add(x, GPU_GROUP_PAIRS, BZ_F32,
                    (gpu_overrides){{tile_rows, words <= 16 ? 128 : 64, words}}, d);
}

/* Vectors of the side buffer where the 8-bit rows of the step's input begin, and their scales. */
static uint32_t quants_at(const builder *x)
{
    for (uint32_t i = 0; i < x->n_early; i++) {
        if (x->early[i].tensor.id == x->step->in[0].id) {
            return x->early[i].at;
        }
    }
    return x->table;
}

static uint32_t scales_at(const builder *x, uint32_t k, uint32_t inputs)
{
    return quants_at(x) + eights_of(x->rows, k, inputs) / 5 * 4;
}

bool gpu_tiles_early(builder *x, bz_tensor t, uint32_t *quants, uint32_t *scales)
{
    const uint32_t need =
        eights_of(bz_plan_rows_of(x->s->plan, t), bz_plan_tensor(x->s->plan, t)->cols, 1);
    uint32_t at = x->table + x->eights;
    for (uint32_t i = 0; i < x->n_early; i++) { /* one behind the other */
        const bz_tensor before = x->early[i].tensor;
        at = x->early[i].at + eights_of(bz_plan_rows_of(x->s->plan, before),
                                        bz_plan_tensor(x->s->plan, before)->cols, 1);
    }
    if (x->n_early == GPU_MOST_EARLY || x->b->matrices ||
        16ull * (at + (uint64_t)need) > gpu_limits_of(x->b->g)->max_binding) {
        return false;
    }
    x->early[x->n_early].tensor = t;
    x->early[x->n_early++].at = at;
    const uint64_t bytes = 16ull * (at + need);
    x->side_bytes = bytes > x->side_bytes ? bytes : x->side_bytes;
    *quants = at;
    *scales = at + need / 5 * 4;
    return true;
}

void gpu_tiles_forget(builder *x)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < x->n_early; i++) {
        const int32_t last = bz_plan_tensor(x->s->plan, x->early[i].tensor)->last;
        if (&x->groups[x->group_of[last]] > x->group) {
            x->early[kept++] = x->early[i];
        }
    }
    x->n_early = kept;
}

/* The step's input in 8 bits, unless it is there already. `inputs` stand one behind the other in a
 * row. */
static void quantize(builder *x, uint32_t k, uint32_t inputs)
{
    dispatch d = {.facts = gpu_builder_facts(x, x->step), .side = true, .y = x->rows};
    const uint32_t steps = inputs * divide_up(k, INTEGER_STEP); /* of a row */
    const uint64_t bytes = 16ull * (x->table + 5ull * x->rows * steps);
    if (x->quantised.id == x->step->in[0].id || quants_at(x) != x->table) {
        return;
    }
    x->quantised = x->step->in[0];
    x->side_bytes = bytes > x->side_bytes ? bytes : x->side_bytes;
    d.facts.k = k;
    d.facts.width = inputs;
    d.facts.out0 = quants_at(x);
    d.facts.out1 = scales_at(x, k, inputs);
    d.x = divide_up((uint64_t)steps * 16, 256);
    gpu_overrides o = {{GATE_NONE}};
    if (x->gate) {
        const step_facts gate = gpu_builder_facts(x, x->gate);
        d.facts.in0 = gate.in0;
        d.facts.in0_stride = gate.in0_stride;
        d.facts.in1 = gate.in1;
        d.facts.in1_stride = gate.in1_stride;
        o.value[0] = x->gate->in[1].id ? GATE_TWO : GATE_ONE;
        o.value[1] = gpu_sums_read(x, x->gate->in[0], &d.facts, &d.facts.in0, &d.facts.in0_stride);
        o.value[2] = gpu_sums_read(x, x->gate->in[1], &d.facts, &d.facts.in1, &d.facts.in1_stride);
    }
    gpu_builder_add(x, GPU_QUANTIZE, BZ_F32, o, d);
}

/* Few tiles leave most of a GPU idle unless k is shared out; each share needs room for its sums. */
static uint32_t splits_for(const builder *x, const tile_kind *kind, uint64_t groups, uint32_t k,
                           uint64_t outputs)
{
    const uint64_t binding = gpu_limits_of(x->b->g)->max_binding, used = x->s->arena_bytes;
    const uint64_t left = binding > used ? binding - used : 0;
    const uint64_t room = left / (4 * x->rows * outputs);
    const uint32_t least = groups <= FEW_GROUPS ? TINY_SPLIT : LEAST_SPLIT;
    uint32_t most = groups <= FEW_GROUPS ? MANY_SPLITS : MOST_SPLITS;
    most = k / least < most ? k / least : most;
    most = room < most ? (uint32_t)room : most;
    uint32_t wanted = groups < kind->few ? divide_up(kind->many, groups) : 1;
    return wanted < most ? wanted : most ? most : 1;
}

/* Do the float kernels that read and write four values at a time fit? Pieces are cut at multiples
 * of four too. */
static bool is_even(const builder *x, uint32_t k_step)
{
    const gpu_weights *ws = &x->b->weights;
    const bz_weight_info *w = bz_weight_of(ws->table, x->step->w[0]);
    const step_facts f = gpu_builder_facts(x, x->step);
    bool even = w->ne[0] % k_step == 0 && w->ne[1] % 4 == 0 &&
                (f.in0 | f.in0_stride | f.out0 | f.out0_stride) % 4 == 0 &&
                x->s->arena_bytes % 16 == 0;
    for (uint32_t i = ws->first_piece[x->step->w[0].id - 1]; i < ws->first_piece[x->step->w[0].id];
         i++) {
        even = even && (ws->pieces[i].first_row | ws->pieces[i].rows) % 4 == 0;
    }
    return even;
}

/* As measured on an H200 (docs/SPEED.md). */
static tile_kind kind_for(const builder *x, bool integers, bool grouped)
{
    if (integers && grouped) { /* few rows share a matrix */
        return (tile_kind){GPU_EXPERT_TILE8, 32, 128, INTEGER_STEP, 256, 512};
    }
    if (integers) {
        return (tile_kind){GPU_LINEAR_TILE8, 64, 64, INTEGER_STEP, 256, 512};
    }
    if (grouped) {
        return (tile_kind){is_even(x, SHORT_STEP) ? GPU_EXPERT_SHORT : GPU_EXPERT_SHORT_ANY,
                           32,
                           128,
                           SHORT_STEP,
                           256,
                           512};
    }
    if (x->rows <= 64) {
        return (tile_kind){is_even(x, SHORT_STEP) ? GPU_LINEAR_SHORT : GPU_LINEAR_SHORT_ANY,
                           64,
                           128,
                           SHORT_STEP,
                           256,
                           512};
    }
    return (tile_kind){is_even(x, FLOAT_STEP) ? GPU_LINEAR_TILE : GPU_LINEAR_TILE_ANY,
                       128,
                       64,
                       FLOAT_STEP,
                       192,
                       256};
}

void gpu_add_tiles(builder *x)
{
    if (gpu_add_matrix_product(x)) {
        return;
    }
    const gpu_weights *ws = &x->b->weights;
    const bz_weight_info *w = bz_weight_of(ws->table, x->step->w[0]);
    const bool grouped = x->step->op == BZ_OP_EXPERT_LINEAR;
    const bool integers = x->b->packed && gpu_kernels_tile8(w->type);
    const uint32_t k = (uint32_t)w->ne[0],
                   inputs = bz_plan_tensor(x->s->plan, x->step->in[0])->cols / k;
    const tile_kind kind = kind_for(x, integers, grouped);
    const uint32_t steps = divide_up(k, kind.step);
    const uint32_t y = grouped ? most_tiles(x, x->step, kind.rows) : divide_up(x->rows, kind.rows);
    uint32_t splits =
        grouped ? 1
                : splits_for(x, &kind, (uint64_t)divide_up(w->ne[1], kind.outs) * y, k, w->ne[1]);
    const uint32_t stretch = divide_up(steps, splits);
    splits = divide_up(steps, stretch);
    if (grouped) {
        group_pairs(x, kind.rows);
    }
    if (integers) {
        quantize(x, k, inputs);
    }
    if (x->gate) { /* its sums have been read now */
        gpu_sums_forget(x);
    }
    dispatch whole = {.facts = gpu_builder_facts(x, x->step), .side = true, .y = y, .z = splits};
    step_facts *f = &whole.facts;
    f->k = k;
    f->row_bytes = (uint32_t)gpu_row_bytes(w->type, k);
    f->cols = (uint32_t)w->ne[1];
    f->slotted = inputs > 1;
    f->stretch = stretch;
    f->in2 = 1; /* tiles of the table, and its list */
    f->in2_stride = grouped ? 1 + most_tiles(x, x->step, kind.rows) : 0;
    if (integers) {
        f->in0 = quants_at(x);
        f->in1 = scales_at(x, k, inputs);
    }
    if (splits > 1) {
        f->out1_stride = x->rows * f->cols;
        f->out1 = gpu_sums_place(x, 4ull * splits *
                                        f->out1_stride); /* behind everything that was placed */
    }
    for (uint32_t i = ws->first_piece[x->step->w[0].id - 1]; i < ws->first_piece[x->step->w[0].id];
         i++) {
        const gpu_piece *piece = &ws->pieces[i];
        dispatch d = whole;
        d.weights = piece->at;
        d.facts.first_row = piece->first_row;
        d.facts.row_count = piece->rows;
        d.x = divide_up(grouped ? w->ne[1] : piece->rows, kind.outs);
        gpu_builder_add(x, kind.kernel, w->type, (gpu_overrides){{0}}, d);
    }
    if (splits > 1) {
        dispatch d = {.facts = whole.facts, .x = divide_up(w->ne[1], 64), .y = x->rows};
        d.facts.heads = splits;
        gpu_sums_add(x, x->step->out[0], &d);
    }
}
