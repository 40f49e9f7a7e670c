/* The side buffer: what only kernels of products read, in vec4s. First the table that groups rows
 * by the expert they chose, then the int8 rows of one tensor at a time, then tensors that a norms
 * kernel writes as int8 (gpu_store_int8). matrix.c keeps f16 tensors of towers after the table
 * instead: towers have neither experts nor int8. */
#include "gpu/lower/builder.h"

enum {
    MIN_TILE_ROWS = 32, /* of all tile kernels */
    INT8_STEP = 64,     /* values of k in workgroup memory at once: rows are padded to it */
    INT8_VEC4S = 5,     /* per INT8_STEP values: 4 of values, 1 of scales of 32 values */
    INT8_FEW_VEC4S = 6  /* for linear8: 4 of values, 2 of scales of 16 values */
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

static uint32_t int8_vec4s_of(const builder *x, bz_tensor t)
{
    return int8_vec4s(bz_plan_rows_of(x->plan, t), bz_plan_tensor(x->plan, t)->cols, 1);
}

/* Scales follow the values, which take 4 of each step's vec4s. */
static uint32_t scales_after(uint32_t values, uint32_t vec4s, uint32_t rows)
{
    return values + vec4s / per_step(rows) * 4;
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
            const uint32_t cols = bz_plan_tensor(x->plan, s->in[0])->cols,
                           k = (uint32_t)bz_weight_of(x->in->weights->table, s->w[0])->ne[0],
                           need = int8_vec4s(bz_plan_rows_of(x->plan, s->out[0]), k, cols / k);
            x->int8_vec4s = need > x->int8_vec4s ? need : x->int8_vec4s;
        }
    }
    gpu_reserve_side(x, 16ull * (x->table_vec4s + 1));
}

bool gpu_is_int8(const builder *x, bz_tensor t, uint32_t *values, uint32_t *scales)
{
    for (uint32_t i = 0; i < x->n_int8_tensors; i++) {
        if (x->int8_tensors[i].tensor.id == t.id) {
            *values = x->int8_tensors[i].at;
            *scales = scales_after(*values, int8_vec4s_of(x, t), bz_plan_rows_of(x->plan, t));
            return true;
        }
    }
    return false;
}

void gpu_int8_input(const builder *x, uint32_t k, uint32_t inputs, uint32_t *values,
                    uint32_t *scales)
{
    if (!gpu_is_int8(x, x->step->in[0], values, scales)) {
        *values = x->table_vec4s;
        *scales = scales_after(*values, int8_vec4s(x->rows, k, inputs), x->rows);
    }
}

void gpu_quantize(builder *x, uint32_t k, uint32_t inputs)
{
    gpu_dispatch d = {.params = gpu_params_of(x, x->step), .side = true, .y = x->rows};
    gpu_params *p = &d.params;
    uint32_t values, scales;
    if (x->int8_tensor.id == x->step->in[0].id ||
        gpu_is_int8(x, x->step->in[0], &values, &scales)) {
        return;
    }
    x->int8_tensor = x->step->in[0];
    gpu_reserve_side(x, 16ull * (x->table_vec4s + (uint64_t)int8_vec4s(x->rows, k, inputs)));
    p->convert.k = k;
    p->convert.inputs = inputs;
    gpu_int8_input(x, k, inputs, &p->out0, &p->out1);
    d.x = divide_up((uint64_t)inputs * divide_up(k, INT8_STEP) * 16, 256);
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
    gpu_emit(x, GPU_QUANTIZE, BZ_F32, o, d);
}

bool gpu_store_int8(builder *x, bz_tensor t, uint32_t *values, uint32_t *scales)
{
    const uint32_t need = int8_vec4s_of(x, t);
    uint32_t at = x->table_vec4s + x->int8_vec4s;
    if (x->n_int8_tensors) { /* after the last one */
        const bz_tensor last = x->int8_tensors[x->n_int8_tensors - 1].tensor;
        at = x->int8_tensors[x->n_int8_tensors - 1].at + int8_vec4s_of(x, last);
    }
    const uint64_t bytes = 16ull * (at + (uint64_t)need);
    if (x->n_int8_tensors == GPU_MAX_INT8_TENSORS || x->in->matrices ||
        bytes > x->in->limits->max_binding) {
        return false;
    }
    x->int8_tensors[x->n_int8_tensors].tensor = t;
    x->int8_tensors[x->n_int8_tensors++].at = at;
    gpu_reserve_side(x, bytes);
    *values = at;
    *scales = scales_after(at, need, bz_plan_rows_of(x->plan, t));
    return true;
}

void gpu_release_int8(builder *x)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < x->n_int8_tensors; i++) {
        const int32_t last = bz_plan_tensor(x->plan, x->int8_tensors[i].tensor)->last;
        if (&x->fused->groups[x->fused->group_of[last]] > x->group) {
            x->int8_tensors[kept++] = x->int8_tensors[i];
        }
    }
    x->n_int8_tensors = kept;
}
