/* Products and attention of towers on subgroup matrices, where the device has them (gpu_limits.matrices) and rounding of
 * activations to f16 is allowed. What they read is first made halves, in the side buffer (kernels/halves.wgsl). */
#include "gpu/matrix.h"

enum {
    LEAST_ROWS = 65,             /* fewer: the tiles of linear_short */
    ROWS = 128, OUTS = 64,       /* of a workgroup of linear_matrix.wgsl */
    SLAB_ROWS = 32, SLAB = 16,   /* of halves */
    HEAD = 64,                   /* of attend_matrix.wgsl */
    PRODUCT_STORAGE = 22528,     /* bytes of workgroup memory */
    ATTEND_STORAGE = 47120
};

/* Vectors of the side buffer that halves of so many values a row take. */
static uint64_t vectors_of(const builder *x, uint32_t values)
{
    return (uint64_t)divide_up(x->rows, SLAB_ROWS) * SLAB_ROWS * values / 8;
}

static bool has_room(builder *x, uint64_t vectors)
{
    const uint64_t bytes = 16 * (x->table + vectors);
    if (bytes > gpu_limits_of(x->b->g)->max_binding) {
        return false;
    }
    x->side_bytes = bytes > x->side_bytes ? bytes : x->side_bytes;
    x->quantised = BZ_NO_TENSOR; /* lay there */
    return true;
}

/* Is it whole rows of whole slabs, each of whole vectors? */
static bool is_even(const builder *x, bz_tensor t)
{
    const bz_tensor_info *info = bz_plan_tensor(x->s->plan, t);
    return info->cols % SLAB == 0 && (info->stride | gpu_builder_place(x, t)) % 4 == 0 && x->s->arena_bytes % 16 == 0;
}

static void halve(builder *x, bz_tensor t, uint64_t at)
{
    const bz_tensor_info *info = bz_plan_tensor(x->s->plan, t);
    dispatch d = {.facts = {.in0 = gpu_builder_place(x, t),
                            .in0_stride = info->stride,
                            .k = info->cols,
                            .out0 = (uint32_t)at,
                            .logits = !info->whole_pass},
                  .side = true,
                  .x = divide_up(info->cols, 64),
                  .y = divide_up(x->rows, SLAB_ROWS)};
    gpu_builder_add(x, GPU_HALVES, BZ_F32, (gpu_overrides){{0}}, d);
}

bool gpu_add_matrix_product(builder *x)
{
    const gpu_weights *ws = &x->b->weights;
    const bz_step *s = x->step;
    const bz_weight_info *w = bz_weight_of(ws->table, s->w[0]);
    const uint32_t k = (uint32_t)w->ne[0];
    if (!x->b->matrices || s->op != BZ_OP_LINEAR || w->type != BZ_F16 || x->rows < LEAST_ROWS || x->gate || !is_even(x, s->in[0]) ||
        bz_plan_tensor(x->s->plan, s->in[0])->cols != k || gpu_limits_of(x->b->g)->max_workgroup_storage < PRODUCT_STORAGE ||
        !has_room(x, vectors_of(x, k))) {
        return false;
    }
    if (x->halved.id != s->in[0].id) {
        halve(x, s->in[0], x->table);
        x->halved = s->in[0];
    }
    for (uint32_t i = ws->first_piece[s->w[0].id - 1]; i < ws->first_piece[s->w[0].id]; i++) {
        const gpu_piece *piece = &ws->pieces[i];
        dispatch d = {.facts = gpu_builder_facts(x, s), .weights = piece->at, .side = true};
        d.facts.in0 = x->table;
        d.facts.k = k;
        d.facts.row_bytes = (uint32_t)gpu_row_bytes(w->type, k);
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
    const uint64_t each = vectors_of(x, s->heads * HEAD);
    if (!x->b->matrices || s->width != HEAD || x->rows < LEAST_ROWS || gpu_limits_of(x->b->g)->max_workgroup_storage < ATTEND_STORAGE) {
        return false;
    }
    for (int i = 0; i < 3; i++) {
        if (bz_plan_tensor(x->s->plan, s->in[i])->cols != s->heads * HEAD || !is_even(x, s->in[i])) {
            return false;
        }
    }
    if (!has_room(x, 3 * each)) {
        return false;
    }
    dispatch d = *plain;
    uint32_t *const at[3] = {&d.facts.in0, &d.facts.in1, &d.facts.in2};
    for (uint32_t i = 0; i < 3; i++) {
        *at[i] = (uint32_t)(x->table + i * each);
        halve(x, s->in[i], *at[i]);
    }
    x->halved = BZ_NO_TENSOR;
    d.side = true;
    d.x = s->heads;
    d.y = divide_up(x->rows, ROWS);
    gpu_builder_add(x, GPU_TOWER_ATTEND_MATRIX, BZ_F32, (gpu_overrides){{0}}, d);
    return true;
}
