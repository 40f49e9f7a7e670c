/* Products and attention of towers on subgroup matrices, where the device has them
 * (gpu_limits.matrices) and activations may be rounded to f16.
 *
 * Their inputs lie as f16 in the side buffer, at half the offset that the tensor has in the arena:
 * so they live as long as the tensor, and never overlap another one. The kernel that computes a
 * tensor writes f16 if nothing else reads it (gpu_store_f16); otherwise a dispatch of its own
 * converts (kernels/product/to_f16.wgsl). Called by tiles.c and tower.c. */
#include "gpu/lower/builder.h"

enum {
    MIN_ROWS = 65,   /* fewer: the tiles of linear_short */
    MIN_GROUPS = 64, /* workgroups: fewer leave most of a large GPU idle, f32 tiles split k */
    ROWS = 128,      /* of a workgroup of linear_matrix.wgsl and attend_matrix.wgsl */
    OUTS = 64,
    SLAB_ROWS = 32, /* f16 values lie in slabs of 32 rows by 16 columns */
    SLAB_COLS = 16,
    HEAD = 64,               /* of attend_matrix.wgsl */
    PRODUCT_STORAGE = 22528, /* bytes of workgroup memory */
    ATTEND_STORAGE = 47120
};

/* ---- what can run on matrices ---------------------------------------------------------------- */

static uint32_t rows_of(const builder *x, bz_tensor t)
{
    return bz_plan_rows_of(x->plan, t);
}

/* Does the tensor own its rows, and do they fill whole slabs? */
static bool has_whole_slabs(const builder *x, bz_tensor t)
{
    const bz_tensor_info *info = bz_plan_tensor(x->plan, t);
    return info->cols % SLAB_COLS == 0 && info->stride == info->cols && info->column == 0 &&
           rows_of(x, t) % SLAB_ROWS == 0 && gpu_offset_of(x, t) % 8 == 0;
}

static uint64_t f16_bytes(const builder *x)
{
    return 16ull * x->table_vec4s + x->out->arena_bytes / 2 + 16;
}

static bool has_storage(const builder *x, uint32_t workgroup_bytes)
{
    const gpu_limits *l = x->in->limits;
    return l->max_workgroup_storage >= workgroup_bytes && f16_bytes(x) <= l->max_binding;
}

static bool can_multiply(const builder *x, const bz_step *s)
{
    if (!x->in->matrices || x->in->packed || s->op != BZ_OP_LINEAR) {
        return false;
    }
    const bz_weight_info *w = bz_weight_of(x->in->weights->table, s->w[0]);
    const uint32_t rows = rows_of(x, s->out[0]);
    return w->type == BZ_F16 && rows >= MIN_ROWS && has_whole_slabs(x, s->in[0]) &&
           bz_plan_tensor(x->plan, s->in[0])->cols == w->ne[0] &&
           (uint64_t)divide_up(rows, ROWS) * divide_up(w->ne[1], OUTS) >= MIN_GROUPS &&
           has_storage(x, PRODUCT_STORAGE);
}

static bool can_attend(const builder *x, const bz_step *s)
{
    bool can = x->in->matrices && s->op == BZ_OP_ATTEND_ALL && s->width == HEAD &&
               rows_of(x, s->out[0]) >= MIN_ROWS && has_storage(x, ATTEND_STORAGE);
    for (int i = 0; i < 3 && can; i++) {
        can = bz_plan_tensor(x->plan, s->in[i])->cols == s->heads * HEAD &&
              has_whole_slabs(x, s->in[i]);
    }
    return can;
}

/* Is t read, and only by steps that run on matrices? */
static bool is_for_matrices(const builder *x, bz_tensor t)
{
    const bz_plan *p = x->plan;
    bool found = false;
    for (uint32_t i = 1; i < p->n_tensors; i++) {
        if (i != t.id && p->tensors[i].root == p->tensors[t.id].root) {
            return false; /* there are views of it */
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

/* ---- f16 tensors ------------------------------------------------------------------------------
 */

/* Where a tensor lies as f16, in vec4s of the side buffer. */
static uint32_t f16_offset(builder *x, bz_tensor t)
{
    gpu_reserve_side(x, f16_bytes(x));
    return x->table_vec4s + gpu_offset_of(x, t) / 8;
}

bool gpu_store_f16(builder *x, const bz_tensor *tensors, uint32_t *const *offsets, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!x->in->matrices || !is_for_matrices(x, tensors[i])) {
            return false;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        *offsets[i] = f16_offset(x, tensors[i]);
        x->stored_f16[tensors[i].id] = true;
    }
    return n > 0;
}

/* The offset of a tensor as f16; converts it now unless that was done. */
static uint32_t f16_input(builder *x, bz_tensor t)
{
    const bz_tensor_info *info = bz_plan_tensor(x->plan, t);
    const uint32_t at = f16_offset(x, t);
    if (!x->stored_f16[t.id]) {
        gpu_dispatch d = {
            .side = true, .x = divide_up(info->cols, 64), .y = divide_up(rows_of(x, t), SLAB_ROWS)};
        gpu_convert_params *p = &d.params.convert;
        p->in0 = gpu_offset_of(x, t);
        p->in0_stride = info->stride;
        p->k = info->cols;
        p->out0 = at;
        p->logit_rows = !info->whole_pass;
        gpu_emit(x, GPU_TO_F16, BZ_F32, (gpu_overrides){{0}}, d);
        x->stored_f16[t.id] = true;
    }
    return at;
}

/* ---- dispatches ---------------------------------------------------------------------------------
 */

bool gpu_lower_matrix_product(builder *x)
{
    const bz_step *s = x->step;
    if (!can_multiply(x, s)) {
        return false;
    }
    const gpu_pieces pieces = gpu_pieces_of(x->in->weights, s->w[0]);
    const bz_weight_info *w = bz_weight_of(x->in->weights->table, s->w[0]);
    const uint32_t at = f16_input(x, s->in[0]);
    for (uint32_t i = 0; i < pieces.n; i++) {
        gpu_dispatch d = {.params = gpu_params_of(x, s),
                          .weights = gpu_bind_piece(&pieces.piece[i]),
                          .side = true};
        d.params.in0 = at;
        d.params.product.k = (uint32_t)w->ne[0];
        d.params.product.row_bytes = (uint32_t)gpu_row_bytes(w->type, w->ne[0]);
        d.params.product.first_row = pieces.piece[i].first_row;
        d.params.product.row_count = pieces.piece[i].rows;
        d.x = divide_up(pieces.piece[i].rows, OUTS);
        d.y = divide_up(x->rows, ROWS);
        gpu_emit(x, GPU_LINEAR_MATRIX, BZ_F32, (gpu_overrides){{0}}, d);
    }
    return true;
}

bool gpu_lower_matrix_attention(builder *x, const gpu_dispatch *plain)
{
    const bz_step *s = x->step;
    if (!can_attend(x, s)) {
        return false;
    }
    gpu_dispatch d = *plain;
    d.params.in0 = f16_input(x, s->in[0]);
    d.params.in1 = f16_input(x, s->in[1]);
    d.params.in2 = f16_input(x, s->in[2]);
    d.side = true;
    d.x = s->heads;
    d.y = divide_up(x->rows, ROWS);
    gpu_emit(x, GPU_TOWER_ATTEND_MATRIX, BZ_F32, (gpu_overrides){{0}}, d);
    return true;
}
