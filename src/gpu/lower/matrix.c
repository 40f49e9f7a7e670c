/* Products and attention of towers on subgroup matrices, where the device has them
 * (gpu_limits.matrices) and rounding of activations to f16 is allowed.
 *
 * What they read lies as halves (kernels/halves.wgsl) in the side buffer, at half the place that
 * the tensor has in the arena: so it is there for as long, and nothing else is. The kernel that
 * makes a tensor makes halves of it where nobody needs anything else; otherwise a dispatch of its
 * own does. */
#include "gpu/lower/matrix.h"

enum {
    LEAST_ROWS = 65,   /* fewer: the tiles of linear_short */
    LEAST_GROUPS = 64, /* fewer leave most of a large GPU idle; float tiles share out k */
    ROWS = 128,
    OUTS = 64, /* of a workgroup of linear_matrix.wgsl */
    SLAB_ROWS = 32,
    SLAB = 16,               /* of halves */
    HEAD = 64,               /* of attend_matrix.wgsl */
    PRODUCT_STORAGE = 22528, /* bytes of workgroup memory */
    ATTEND_STORAGE = 47120
};

/* ---- what can be done ------------------------------------------------------------------- */

static uint32_t rows_of(const builder *x, bz_tensor t)
{
    return bz_plan_rows_of(x->s->plan, t);
}

/* Whole rows of whole slabs, that lie by themselves? */
static bool is_even(const builder *x, bz_tensor t)
{
    const bz_tensor_info *info = bz_plan_tensor(x->s->plan, t);
    return info->cols % SLAB == 0 && info->stride == info->cols && info->column == 0 &&
           rows_of(x, t) % SLAB_ROWS == 0 && gpu_builder_place(x, t) % 8 == 0;
}

static bool has_storage(const builder *x, uint32_t bytes)
{
    const gpu_limits *l = gpu_limits_of(x->b->g);
    return l->max_workgroup_storage >= bytes &&
           16ull * x->table + x->s->arena_bytes / 2 + 16 <= l->max_binding;
}

static bool can_multiply(const builder *x, const bz_step *s)
{
    const bz_weight_info *w = bz_weight_of(x->b->weights.table, s->w[0]);
    const uint32_t rows = rows_of(x, s->out[0]);
    return x->b->matrices && s->op == BZ_OP_LINEAR && w->type == BZ_F16 && rows >= LEAST_ROWS &&
           is_even(x, s->in[0]) && bz_plan_tensor(x->s->plan, s->in[0])->cols == w->ne[0] &&
           (uint64_t)divide_up(rows, ROWS) * divide_up(w->ne[1], OUTS) >= LEAST_GROUPS &&
           has_storage(x, PRODUCT_STORAGE);
}

static bool can_attend(const builder *x, const bz_step *s)
{
    bool can = x->b->matrices && s->op == BZ_OP_ATTEND_ALL && s->width == HEAD &&
               rows_of(x, s->out[0]) >= LEAST_ROWS && has_storage(x, ATTEND_STORAGE);
    for (int i = 0; i < 3 && can; i++) {
        can = bz_plan_tensor(x->s->plan, s->in[i])->cols == s->heads * HEAD && is_even(x, s->in[i]);
    }
    return can;
}

/* Does no step read it but on matrices? */
static bool is_for_matrices(const builder *x, bz_tensor t)
{
    const bz_plan *p = x->s->plan;
    bool found = false;
    for (uint32_t i = 1; i < p->n_tensors; i++) {
        if (i != t.id && p->tensors[i].root == p->tensors[t.id].root) {
            return false; /* parts of it have names of their own */
        }
    }
    for (size_t k = 0; k < p->n_steps; k++) {
        const bz_step *s = &p->steps[k];
        for (size_t i = 0; i < sizeof s->in / sizeof *s->in; i++) {
            if (s->in[i].id == t.id) {
                found = true;
                if (!(i == 0 && can_multiply(x, s)) && !can_attend(x, s)) {
                    return false;
                }
            }
        }
    }
    return found && t.id != p->output.id;
}

/* ---- halves -------------------------------------------------------------------------------- */

/* Where a tensor's halves lie, in vectors of the side buffer. */
static uint32_t halves_at(builder *x, bz_tensor t)
{
    const uint64_t bytes = 16ull * x->table + x->s->arena_bytes / 2 + 16;
    x->side_bytes = bytes > x->side_bytes ? bytes : x->side_bytes;
    return x->table + gpu_builder_place(x, t) / 8;
}

bool gpu_make_halves(builder *x, const bz_tensor *made, uint32_t *const *places, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!x->b->matrices || !is_for_matrices(x, made[i])) {
            return false;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        *places[i] = halves_at(x, made[i]);
        x->halved[made[i].id] = true;
    }
    return n > 0;
}

/* A tensor's halves, made now unless they are there. */
static uint32_t halves_of(builder *x, bz_tensor t)
{
    const bz_tensor_info *info = bz_plan_tensor(x->s->plan, t);
    const uint32_t at = halves_at(x, t);
    if (!x->halved[t.id]) {
        dispatch d = {.facts = {.in0 = gpu_builder_place(x, t),
                                .in0_stride = info->stride,
                                .k = info->cols,
                                .out0 = at,
                                .logits = !info->whole_pass},
                      .side = true,
                      .x = divide_up(info->cols, 64),
                      .y = divide_up(rows_of(x, t), SLAB_ROWS)};
        gpu_builder_add(x, GPU_HALVES, BZ_F32, (gpu_overrides){{0}}, d);
        x->halved[t.id] = true;
    }
    return at;
}

/* ---- dispatches ------------------------------------------------------------------------------ */

bool gpu_add_matrix_product(builder *x)
{
    const gpu_weights *ws = &x->b->weights;
    const bz_step *s = x->step;
    if (!can_multiply(x, s)) {
        return false;
    }
    const bz_weight_info *w = bz_weight_of(ws->table, s->w[0]);
    const uint32_t at = halves_of(x, s->in[0]);
    for (uint32_t i = ws->first_piece[s->w[0].id - 1]; i < ws->first_piece[s->w[0].id]; i++) {
        const gpu_piece *piece = &ws->pieces[i];
        dispatch d = {.facts = gpu_builder_facts(x, s), .weights = piece->at, .side = true};
        d.facts.in0 = at;
        d.facts.k = (uint32_t)w->ne[0];
        d.facts.row_bytes = (uint32_t)gpu_row_bytes(w->type, w->ne[0]);
        d.facts.first_row = piece->first_row;
        d.facts.row_count = piece->rows;
        d.x = divide_up(piece->rows, OUTS);
        d.y = divide_up(x->rows, ROWS);
        gpu_builder_add(x, GPU_LINEAR_MATRIX, BZ_F32, (gpu_overrides){{0}}, d);
    }
    return true;
}

bool gpu_add_matrix_attention(builder *x, const dispatch *plain)
{
    const bz_step *s = x->step;
    if (!can_attend(x, s)) {
        return false;
    }
    dispatch d = *plain;
    d.facts.in0 = halves_of(x, s->in[0]);
    d.facts.in1 = halves_of(x, s->in[1]);
    d.facts.in2 = halves_of(x, s->in[2]);
    d.side = true;
    d.x = s->heads;
    d.y = divide_up(x->rows, ROWS);
    gpu_builder_add(x, GPU_TOWER_ATTEND_MATRIX, BZ_F32, (gpu_overrides){{0}}, d);
    return true;
}
