/* Steps that only towers have, as dispatches; and what the host hands in before a tower's pass. */
#include "gpu/tower.h"

#include <math.h>
#include <stdlib.h>

enum { OP_PLACE, OP_CLAMP, OP_ADD_VECTOR, OP_ADD_SCALED, OP_RELU, OP_SILU, OP_GLU, OP_MUL_VECTOR, OP_POOL, OP_CONV_TIME }; /* values.wgsl */

enum { ATTEND_ROWS = 8, MOST_HEAD = 96 };

static void refuse(builder *x, const char *why)
{
    bz_fail(x->err, BZ_UNSUPPORTED_MODEL, "The step %s does not run on the GPU: %s.", bz_op_name(x->step->op), why);
    x->failed = true;
}

/* How tower/weights.wgsl reads them: one binding, values one by one. */
static uint32_t kind_of(builder *x)
{
    const gpu_weights *ws = &x->b->weights;
    const bz_weight w = x->step->w[0];
    if (!w.id) {
        return 0;
    }
    const bz_type type = bz_weight_of(ws->table, w)->type;
    if (ws->first_piece[w.id] - ws->first_piece[w.id - 1] != 1) {
        refuse(x, "its weights are larger than one binding");
    } else if (type != BZ_F32 && type != BZ_F16 && type != BZ_BF16) {
        refuse(x, "its weights are quantised");
    }
    return type == BZ_F16 ? 1 : type == BZ_BF16 ? 2 : 0;
}

static void values(builder *x, uint32_t op)
{
    const bz_step *s = x->step;
    dispatch d = {.facts = gpu_builder_facts(x, s), .weights = gpu_builder_vector(x, s->w[0])};
    if (op == OP_CLAMP) { /* infinity is not a number that shaders need know */
        d.facts.scale = isinf(s->low) ? -3e38f : s->low;
        d.facts.eps = isinf(s->high) ? 3e38f : s->high;
    } else if (op == OP_PLACE) {
        d.facts.row_count = (uint32_t)bz_weight_of(x->b->weights.table, s->w[0])->ne[1];
    }
    d.x = divide_up(d.facts.cols, 64);
    d.y = x->rows;
    gpu_builder_add(x, GPU_TOWER_VALUES, BZ_F32, (gpu_overrides){{op, kind_of(x)}}, d);
}

void gpu_add_tower_step(builder *x)
{
    const bz_step *s = x->step;
    switch (s->op) {
    case BZ_OP_INPUT:
    case BZ_OP_WAVES: break; /* written by the host */
    case BZ_OP_PLACE: values(x, OP_PLACE); break;
    case BZ_OP_CLAMP: values(x, OP_CLAMP); break;
    case BZ_OP_ADD_VECTOR: values(x, OP_ADD_VECTOR); break;
    case BZ_OP_ADD_SCALED: values(x, OP_ADD_SCALED); break;
    case BZ_OP_RELU: values(x, OP_RELU); break;
    case BZ_OP_SILU: values(x, OP_SILU); break;
    case BZ_OP_GLU: values(x, OP_GLU); break;
    case BZ_OP_MUL_VECTOR: values(x, OP_MUL_VECTOR); break;
    case BZ_OP_POOL: values(x, OP_POOL); break;
    case BZ_OP_CONV_TIME: values(x, OP_CONV_TIME); break;
    case BZ_OP_LAYER_NORM: {
        dispatch d = {.facts = gpu_builder_facts(x, s), .weights = gpu_builder_vector(x, s->w[0]), .y = x->rows};
        d.x = d.facts.cols / s->width;
        gpu_builder_add(x, GPU_TOWER_LAYER_NORM, BZ_F32, (gpu_overrides){{kind_of(x)}}, d);
        break;
    }
    case BZ_OP_ATTEND_ALL: {
        dispatch d = {.facts = gpu_builder_facts(x, s), .x = s->heads, .y = divide_up(x->rows, ATTEND_ROWS)};
        if (s->width > MOST_HEAD) {
            refuse(x, "its heads are too wide");
        }
        gpu_builder_add(x, GPU_TOWER_ATTEND, BZ_F32, (gpu_overrides){{s->width}}, d);
        break;
    }
    case BZ_OP_CONV: {
        dispatch d = {.facts = gpu_builder_facts(x, s), .weights = gpu_builder_vector(x, s->w[0]), .y = x->rows};
        d.facts.k = (uint32_t)bz_weight_of(x->b->weights.table, s->w[0])->ne[1];
        d.facts.experts = s->steps;
        d.x = divide_up(d.facts.cols, 64);
        gpu_builder_add(x, GPU_TOWER_CONV, BZ_F32, (gpu_overrides){{kind_of(x)}}, d);
        break;
    }
    case BZ_OP_LOCAL_SCORES:
    case BZ_OP_LOCAL_SUM: {
        const bool sum = s->op == BZ_OP_LOCAL_SUM;
        dispatch d = {.facts = gpu_builder_facts(x, s), .y = x->rows};
        d.x = divide_up(sum ? d.facts.cols : s->heads, 64);
        gpu_builder_add(x, GPU_TOWER_LOCAL, BZ_F32, (gpu_overrides){{sum}}, d);
        break;
    }
    default: refuse(x, "it has no kernel"); break;
    }
}

/* ---- before a pass -------------------------------------------------------------------- */

static void write_waves(gpu_backend *b, const bz_schedule *s, const bz_step *step, const bz_rows *rows)
{
    const uint32_t half = step->width / 2;
    float *row = malloc(step->width * sizeof *row);
    const double slow = half > 1 ? log(step->base) / (half - 1) : 0;
    for (uint32_t r = 0; row && r < rows->n_out; r++) {
        for (uint32_t i = 0; i < half; i++) {
            const double angle = r * exp(-slow * i);
            row[i] = (float)sin(angle);
            row[half + i] = (float)cos(angle);
        }
        gpu_write(b->g, b->arena, gpu_place(s, step->out[0]) + (uint64_t)r * step->width * 4, row, (uint64_t)step->width * 4);
    }
    free(row);
}

void gpu_write_tower(gpu_backend *b, const bz_schedule *s, const bz_rows *rows)
{
    const uint32_t block[5] = {rows->n, rows->n_out, rows->across, 0, rows->moments};
    gpu_write(b->g, b->rows, 0, block, sizeof block);
    for (size_t i = 0; i < s->plan->n_steps; i++) {
        const bz_step *step = &s->plan->steps[i];
        if (step->op == BZ_OP_INPUT) {
            const uint64_t bytes = (uint64_t)rows->n * bz_plan_tensor(s->plan, step->out[0])->cols * 4;
            gpu_write(b->g, b->arena, gpu_place(s, step->out[0]), rows->input, bytes);
        } else if (step->op == BZ_OP_WAVES) {
            write_waves(b, s, step, rows);
        }
    }
}
