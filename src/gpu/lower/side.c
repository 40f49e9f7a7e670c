/* The side buffer: what only kernels of products read, in vec4s. First the table that groups rows
 * by the expert they chose, then the int8 or f16 rows of one tensor at a time, then tensors that
 * other kernels write as int8 or f16 (gpu_store_rounded). matrix.c keeps f16 tensors of towers
 * after the table instead: towers have neither experts nor int8. */
#include "gpu/lower/builder.h"

enum {
    MIN_TILE_ROWS = 32,    /* of all tile kernels */
    INT8_STEP = 64,        /* values of k in workgroup memory at once: rows are padded to it */
    INT8_VEC4S = 5,        /* per INT8_STEP values: 4 of values, 1 of scales of 32 values */
    INT8_FEW_VEC4S = 6,    /* for linear8: 4 of values, 2 of scales of 16 values */
    TILE16_MIN_ROWS = 65,  /* fewer: linear_tile8 */
    TILE16_ROWS = 128,     /* of a workgroup of linear_tile16: rows are padded to it */
    TILE16_STEP = 64,      /* values of k: multiples only */
    TILE16_THREADS = 1024, /* of to_tile16 at most */
    TILE16_EACH = 24,      /* values of a thread at most */
    TILE16_STORAGE = 43520 /* bytes of workgroup memory */
};

enum { GEGLU_NONE, GEGLU_TWO_TENSORS, GEGLU_ONE_TENSOR }; /* GATE of quantize.wgsl */

/* ---- experts -------------------------------------------------------------------------------- */

uint32_t gpu_max_expert_tiles(const builder *x, const bz_step *step, uint32_t tile_rows)
{
    const uint64_t experts = bz_weight_of(x->in->weights->table, step->w[0])->ne[2],
                   pairs = (uint64_t)x->plan->rows * step->experts_used;
    return divide_up(pairs, tile_rows) + (uint32_t)(experts < pairs ? experts : pairs);
}

void gpu_group_by_expert(builder *x, uint32_t tile_rows)
{
    gpu_dispatch d = {.params = gpu_params_of(x, x->step), .side = true, .x = 1, .y = 1};
    if (x->table_ids.id == x->step->in[1].id && x->table_tile_rows == tile_rows) {
        return;
    }
    x->table_ids = x->step->in[1];
    x->table_tile_rows = tile_rows;
    d.params.in0 = d.params.in1;
    d.params.in0_stride = d.params.in1_stride;
    d.params.expert.experts = (uint32_t)bz_weight_of(x->in->weights->table, x->step->w[0])->ne[2];
    d.params.expert.slots = x->step->experts_used;
    d.params.out0 = 0;
    d.params.out1 = 1 + gpu_max_expert_tiles(x, x->step, tile_rows);
    const uint32_t words = divide_up(x->plan->rows, 32);
    gpu_emit(x, GPU_GROUP_PAIRS, BZ_F32,
             (gpu_overrides){{tile_rows, words <= 16 ? 128 : 64, words}}, d);
}

/* ---- int8 rows ------------------------------------------------------------------------------- */

static uint32_t per_step(uint32_t rows)
{
    return rows <= GPU_MAX_VECTOR_ROWS ? INT8_FEW_VEC4S : INT8_VEC4S;
}

static uint32_t int8_vec4s(uint32_t rows, uint32_t k, uint32_t inputs)
{
    return per_step(rows) * rows * inputs * divide_up(k, INT8_STEP);
}

/* Scales follow the values, which take 4 of each step's vec4s. */
static uint32_t scales_after(uint32_t values, uint32_t vec4s, uint32_t rows)
{
    return values + vec4s / per_step(rows) * 4;
}

/* ---- f16 rows ---------------------------------------------------------------------------------
 */

static uint32_t max_f16_threads(const builder *x)
{
    const uint32_t most = x->in->limits->max_invocations;
    return most < TILE16_THREADS ? most : TILE16_THREADS;
}

bool gpu_is_tile16(const builder *x, const bz_step *s)
{
    if (!x->in->matrices || !x->in->packed || s->op != BZ_OP_LINEAR) {
        return false;
    }
    const bz_weight_info *w = bz_weight_of(x->in->weights->table, s->w[0]);
    return gpu_kernels_tile16(w->type) && w->ne[0] % TILE16_STEP == 0 &&
           w->ne[0] <= TILE16_EACH * max_f16_threads(x) &&
           bz_plan_rows_of(x->plan, s->out[0]) >= TILE16_MIN_ROWS &&
           x->in->limits->max_workgroup_storage >= TILE16_STORAGE;
}

/* What the products that read t want it as; f32 if they do not agree. */
static gpu_form form_for_readers(const builder *x, bz_tensor t)
{
    const bz_tensor_info *info = bz_plan_tensor(x->plan, t);
    uint32_t readers = 0, f16_readers = 0;
    for (int32_t i = info->first + 1; i <= info->last; i++) {
        if (x->plan->steps[i].in[0].id == t.id) {
            const bool adapters = gpu_is_low_rank(x->plan, (size_t)i); /* read f32 */
            readers += !adapters;
            f16_readers += !adapters && gpu_is_tile16(x, &x->plan->steps[i]);
        }
    }
    return f16_readers == 0 ? GPU_INT8 : f16_readers == readers ? GPU_F16 : GPU_F32;
}

/* Threads of to_tile16 for a row of k values: each takes about eight. */
static uint32_t f16_threads(const builder *x, uint32_t k)
{
    uint32_t threads = 64;
    while (2 * threads <= max_f16_threads(x) && threads * 8 < k) {
        threads *= 2;
    }
    return threads;
}

static uint32_t f16_vec4s(uint32_t rows, uint32_t k)
{
    return divide_up(rows, TILE16_ROWS) * TILE16_ROWS / 8 * k;
}

static uint32_t factor_vec4s(uint32_t rows)
{
    return divide_up(rows, TILE16_ROWS) * TILE16_ROWS / 4;
}

/* ---- inputs of tiles ----------------------------------------------------------------------------
 */

/* Space for the converted input of a product: as int8, or as f16 if that is wanted. */
static uint32_t converted_vec4s(const builder *x, const bz_step *s)
{
    const uint32_t rows = bz_plan_rows_of(x->plan, s->out[0]),
                   cols = bz_plan_tensor(x->plan, s->in[0])->cols,
                   k = (uint32_t)bz_weight_of(x->in->weights->table, s->w[0])->ne[0];
    return gpu_is_tile16(x, s) ? f16_vec4s(rows, k) + factor_vec4s(rows)
                               : int8_vec4s(rows, k, cols / k);
}

void gpu_side_reserve(builder *x)
{
    for (size_t i = 0; i < x->plan->n_steps; i++) {
        const bz_step *s = &x->plan->steps[i];
        if (s->op == BZ_OP_EXPERT_LINEAR) {
            const uint32_t need = 1 + gpu_max_expert_tiles(x, s, MIN_TILE_ROWS) +
                                  divide_up((uint64_t)x->plan->rows * s->experts_used, 4);
            x->table_vec4s = need > x->table_vec4s ? need : x->table_vec4s;
        }
        if (s->op == BZ_OP_LINEAR || s->op == BZ_OP_EXPERT_LINEAR) {
            const uint32_t need = converted_vec4s(x, s);
            x->converted_vec4s = need > x->converted_vec4s ? need : x->converted_vec4s;
        }
    }
    gpu_reserve_side(x, 16ull * (x->table_vec4s + 1));
}

/* Values and scales of a tensor that another kernel writes. */
static uint32_t stored_vec4s(const builder *x, bz_tensor t, gpu_form form)
{
    const uint32_t rows = bz_plan_rows_of(x->plan, t), k = bz_plan_tensor(x->plan, t)->cols;
    return form == GPU_F16 ? f16_vec4s(rows, k) + factor_vec4s(rows) : int8_vec4s(rows, k, 1);
}

static uint32_t stored_scales(const builder *x, bz_tensor t, gpu_form form, uint32_t values)
{
    const uint32_t rows = bz_plan_rows_of(x->plan, t), k = bz_plan_tensor(x->plan, t)->cols;
    return form == GPU_F16 ? values + f16_vec4s(rows, k)
                           : scales_after(values, int8_vec4s(rows, k, 1), rows);
}

bool gpu_is_stored(const builder *x, bz_tensor t, gpu_form form, uint32_t *values, uint32_t *scales)
{
    for (uint32_t i = 0; i < x->n_stored; i++) {
        if (x->stored[i].tensor.id == t.id && x->stored[i].form == form) {
            *values = x->stored[i].at;
            *scales = stored_scales(x, t, form, *values);
            return true;
        }
    }
    return false;
}

void gpu_converted_input(const builder *x, uint32_t k, uint32_t inputs, uint32_t *values,
                         uint32_t *scales)
{
    const gpu_form form = gpu_is_tile16(x, x->step) ? GPU_F16 : GPU_INT8;
    if (!gpu_is_stored(x, x->step->in[0], form, values, scales)) {
        *values = x->table_vec4s;
        *scales = form == GPU_F16 ? *values + f16_vec4s(x->rows, k)
                                  : scales_after(*values, int8_vec4s(x->rows, k, inputs), x->rows);
    }
}

void gpu_convert_input(builder *x, uint32_t k, uint32_t inputs)
{
    gpu_dispatch d = {.params = gpu_params_of(x, x->step), .side = true, .y = x->rows};
    gpu_params *p = &d.params;
    const gpu_form form = gpu_is_tile16(x, x->step) ? GPU_F16 : GPU_INT8;
    uint32_t values, scales;
    if ((x->converted.id == x->step->in[0].id && x->converted_form == form) ||
        gpu_is_stored(x, x->step->in[0], form, &values, &scales)) {
        return;
    }
    x->converted = x->step->in[0];
    x->converted_form = form;
    gpu_reserve_side(x, 16ull * (x->table_vec4s + (uint64_t)converted_vec4s(x, x->step)));
    p->convert.k = k;
    p->convert.inputs = inputs;
    gpu_converted_input(x, k, inputs, &p->out0, &p->out1);
    d.x = form == GPU_F16 ? 1 : divide_up((uint64_t)inputs * divide_up(k, INT8_STEP) * 16, 256);
    gpu_overrides o = {{GEGLU_NONE}};
    if (x->geglu) {
        const gpu_params geglu = gpu_params_of(x, x->geglu);
        p->in0 = geglu.in0;
        p->in0_stride = geglu.in0_stride;
        p->in1 = geglu.in1;
        p->in1_stride = geglu.in1_stride;
        o.value[0] = x->geglu->in[1].id ? GEGLU_TWO_TENSORS : GEGLU_ONE_TENSOR;
        o.value[1] = gpu_read_partial_sums(x, x->geglu->in[0], &p->in0, &p->in0_stride,
                                           &p->convert.split_rows);
        o.value[2] = gpu_read_partial_sums(x, x->geglu->in[1], &p->in1, &p->in1_stride,
                                           &p->convert.split_rows);
    }
    if (x->group->fusion == GPU_FUSE_GEGLU_KEPT) {
        p->convert.kept = gpu_offset_of(x, x->geglu->out[0]);
        p->convert.kept_stride = gpu_stride_of(x, x->geglu->out[0]);
    }
    if (form == GPU_F16) {
        const uint32_t fours = k / 4, threads = f16_threads(x, k);
        o.value[3] = threads;
        o.value[4] = divide_up(fours, threads);
    }
    gpu_emit(x, form == GPU_F16 ? GPU_TO_TILE16 : GPU_QUANTIZE, BZ_F32, o, d);
}

gpu_form gpu_store_rounded(builder *x, bz_tensor t, uint32_t *values, uint32_t *scales)
{
    const gpu_form form = form_for_readers(x, t);
    uint32_t at = x->table_vec4s + x->converted_vec4s;
    if (x->n_stored) { /* after the last one */
        const uint32_t last = x->n_stored - 1;
        at = x->stored[last].at + stored_vec4s(x, x->stored[last].tensor, x->stored[last].form);
    }
    const uint64_t bytes = 16ull * (at + (uint64_t)stored_vec4s(x, t, form));
    if (x->n_stored == GPU_MAX_STORED || form == GPU_F32 || bytes > x->in->limits->max_binding) {
        return GPU_F32;
    }
    x->stored[x->n_stored].tensor = t;
    x->stored[x->n_stored].form = form;
    x->stored[x->n_stored++].at = at;
    gpu_reserve_side(x, bytes);
    *values = at;
    *scales = stored_scales(x, t, form, at);
    return form;
}

void gpu_release_stored(builder *x)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < x->n_stored; i++) {
        const int32_t last = bz_plan_tensor(x->plan, x->stored[i].tensor)->last;
        if (&x->fused->groups[x->fused->group_of[last]] > x->group) {
            x->stored[kept++] = x->stored[i];
        }
    }
    x->n_stored = kept;
}
