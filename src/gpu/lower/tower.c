/* Steps that only towers have, as dispatches; and what the host hands in before a tower's pass. */
#include "gpu/lower/tower.h"

#include "gpu/lower/matrix.h"

#include <math.h>
#include <stdlib.h>

enum {
    OP_PLACE,
    OP_CLAMP,
    OP_ADD_VECTOR,
    OP_ADD_SCALED,
    OP_RELU,
    OP_SILU,
    OP_GLU,
    OP_MUL_VECTOR,
    OP_POOL,
    OP_CONV_TIME
}; /* values.wgsl */

enum { ATTEND_THREADS = 128, MOST_DOWN = 16, MOST_HEAD = 96 }; /* of attend_all.wgsl */

enum { CONV_SIDE = 32 }; /* pitches and outputs of a workgroup */

enum {
    ROWS_NORM = 1,
    ROWS_ADD = 2,
    ROWS_KEEP = 4,
    ROWS_THEN = 8,
    ROWS_SILU = 16
}; /* FORM of rows.wgsl */

enum { GATE_GEGLU, GATE_SILU, GATE_GLU }; /* OP of gate.wgsl */

static void refuse(builder *x, const char *why)
{
    bz_fail(x->err, BZ_UNSUPPORTED_MODEL, "The step %s does not run on the GPU: %s.",
            bz_op_name(x->step->op), why);
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

/* Bounds of a clamp; of NULL none, and infinity is not a number that shaders need know. */
static void bound(step_facts *f, int i, const bz_step *clamp)
{
    f->bound[i].low = clamp && !isinf(clamp->low) ? clamp->low : -3e38f;
    f->bound[i].high = clamp && !isinf(clamp->high) ? clamp->high : 3e38f;
}

static void values(builder *x, uint32_t op)
{
    const bz_step *s = x->step;
    dispatch d = {.facts = gpu_builder_facts(x, s), .weights = gpu_builder_vector(x, s->w[0])};
    if (op == OP_CLAMP) {
        bound(&d.facts, 0, s);
        d.facts.scale = d.facts.bound[0].low;
        d.facts.eps = d.facts.bound[0].high;
    } else if (op == OP_PLACE) {
        d.facts.row_count = (uint32_t)bz_weight_of(x->b->weights.table, s->w[0])->ne[1];
    }
    d.x = divide_up(d.facts.cols, 64);
    d.y = x->rows;
    gpu_builder_add(x, GPU_TOWER_VALUES, BZ_F32, (gpu_overrides){{op, kind_of(x)}}, d);
}

static void attend_all(builder *x, const bz_step *clamp)
{
    const bz_step *s = x->step;
    const uint32_t across = divide_up(s->width, 8), room = ATTEND_THREADS / across,
                   down = room < MOST_DOWN ? room : MOST_DOWN;
    uint32_t slice = across < 4 ? across : 4;
    while (2 * across % slice) {
        slice--;
    }
    dispatch d = {
        .facts = gpu_builder_facts(x, s), .x = s->heads, .y = divide_up(x->rows, 8 * down)};
    step_facts *f = &d.facts;
    if (s->width > MOST_HEAD || s->width % 4 ||
        (f->in0 | f->in0_stride | f->in1 | f->in1_stride | f->in2 | f->in2_stride | f->out0 |
         f->out0_stride) %
            4) {
        refuse(x, "its heads are too wide or uneven");
    }
    bound(f, 0, clamp);
    f->out0 = gpu_builder_place(x, clamp ? clamp->out[0] : s->out[0]);
    if (!gpu_add_matrix_attention(x, &d)) {
        gpu_builder_add(x, GPU_TOWER_ATTEND, BZ_F32, (gpu_overrides){{s->width, down, slice}}, d);
    }
}

void gpu_add_tower_step(builder *x)
{
    const bz_step *s = x->step;
    switch (s->op) {
    case BZ_OP_INPUT:
    case BZ_OP_SINUSOIDS: break; /* written by the host */
    case BZ_OP_POSITION_EMBED: values(x, OP_PLACE); break;
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
        dispatch d = {.facts = gpu_builder_facts(x, s),
                      .weights = gpu_builder_vector(x, s->w[0]),
                      .y = x->rows};
        d.x = d.facts.cols / s->width;
        d.facts.out0 = gpu_builder_place(
            x, s[x->steps - 1].out[0]); /* relu, where it is done too, is of the same shape */
        gpu_builder_add(x, GPU_TOWER_LAYER_NORM, BZ_F32,
                        (gpu_overrides){{kind_of(x), x->steps > 1}}, d);
        break;
    }
    case BZ_OP_ATTEND_ALL: attend_all(x, NULL); break;
    case BZ_OP_CONV: {
        dispatch d = {.facts = gpu_builder_facts(x, s),
                      .weights = gpu_builder_vector(x, s->w[0]),
                      .y = x->rows};
        d.facts.k = (uint32_t)bz_weight_of(x->b->weights.table, s->w[0])->ne[1];
        d.facts.experts = s->frames;
        d.facts.heads = s->channels;
        d.x = divide_up(d.facts.k, CONV_SIDE) * divide_up(s->width / 2, CONV_SIDE);
        d.z = s->frames / 2;
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

/* ---- steps done together ------------------------------------------------------------- */

/* The step at a place of a group, which count from 1. */
static const bz_step *step_at(const builder *x, uint8_t place)
{
    return place ? x->step + place - 1 : NULL;
}

static void to(const builder *x, bz_tensor t, uint32_t *place, uint32_t *stride)
{
    *place = gpu_builder_place(x, t);
    *stride = bz_plan_tensor(x->s->plan, t)->stride;
}

static void rows(builder *x, const gpu_group *g)
{
    const bz_step *clamp = step_at(x, g->tower.clamp), *norm = step_at(x, g->tower.norm),
                  *add = step_at(x, g->tower.add);
    const bz_step *then = step_at(x, g->tower.then), *first = x->step;
    const gpu_binding nothing = {x->b->nothing, 0, 0};
    dispatch d = {.weights = norm ? gpu_builder_vector(x, norm->w[0]) : nothing,
                  .extra = {then ? gpu_builder_vector(x, then->w[0]) : nothing},
                  .x = 1,
                  .y = x->rows};
    step_facts *f = &d.facts;
    uint32_t form =
        (norm ? ROWS_NORM : 0) | (then ? ROWS_THEN : 0) | (g->tower.silu ? ROWS_SILU : 0);
    to(x, first->in[0], &f->in0, &f->in0_stride);
    bound(f, 0, clamp);
    f->eps = norm ? norm->eps : 0;
    f->eps2 = then ? then->eps : 0;
    if (add) {
        const bool kept = bz_plan_tensor(x->s->plan, add->out[0])->last >=
                          (int32_t)(first - x->s->plan->steps + (ptrdiff_t)g->count);
        form |= ROWS_ADD | (kept ? ROWS_KEEP : 0);
        to(x, add->in[0], &f->in1, &f->in1_stride);
        to(x, add->out[0], &f->out1, &f->out1_stride);
        f->scale = add->scale;
    }
    bz_tensor made[3] = {{0}};
    for (uint32_t i = 0; i < g->tower.n_outs; i++) {
        const bz_step *s = step_at(x, g->tower.outs[i]);
        bound(f, (int)i + 1, s->op == BZ_OP_CLAMP ? s : NULL);
        to(x, s->out[0], i ? &f->part[i - 1].out : &f->out0,
           i ? &f->part[i - 1].stride : &f->out0_stride);
        made[i] = s->out[0];
    }
    uint32_t *const places[3] = {&f->out0, &f->part[0].out, &f->part[1].out};
    d.side = gpu_make_halves(x, made, places, g->tower.n_outs);
    const uint32_t vectors = bz_plan_tensor(x->s->plan, first->in[0])->cols / 4;
    gpu_builder_add(x, d.side ? GPU_TOWER_ROWS_HALVES : GPU_TOWER_ROWS, BZ_F32,
                    (gpu_overrides){{form, g->tower.n_outs, vectors}}, d);
}

static void heads(builder *x, const gpu_group *g)
{
    const bz_step *norm = step_at(x, g->tower.norm), *rope = step_at(x, g->tower.then),
                  *last = rope ? rope : norm;
    dispatch d = {.facts = gpu_builder_facts(x, norm),
                  .weights = gpu_builder_vector(x, norm->w[0]),
                  .y = x->rows};
    to(x, x->step->in[0], &d.facts.in0, &d.facts.in0_stride);
    to(x, last->out[0], &d.facts.out0, &d.facts.out0_stride);
    if (rope) {
        to(x, rope->in[1], &d.facts.in1, &d.facts.in1_stride);
    }
    bound(&d.facts, 0, step_at(x, g->tower.clamp));
    d.x = divide_up(d.facts.cols / norm->width, 4);
    const step_facts *f = &d.facts;
    const uint32_t axis = rope ? rope->width : norm->width;
    const bool even =
        norm->width % 4 == 0 && (!rope || axis % 8 == 0) &&
        (f->in0 | f->in0_stride | f->out0 | f->out0_stride | (rope ? f->in1 | f->in1_stride : 0)) %
                4 ==
            0;
    uint32_t *const place = &d.facts.out0;
    d.side = even && gpu_make_halves(x, &last->out[0], &place, 1);
    gpu_builder_add(x,
                    d.side ? GPU_TOWER_HEADS_HALVES
                    : even ? GPU_TOWER_HEADS
                           : GPU_TOWER_HEADS_ANY,
                    BZ_F32, (gpu_overrides){{norm->width, axis, rope != NULL, norm->w[0].id != 0}},
                    d);
}

static void gate(builder *x, const gpu_group *g)
{
    const bz_step *s = step_at(x, g->tower.then), *clamps[3];
    dispatch d = {.facts = gpu_builder_facts(x, s), .y = x->rows};
    step_facts *f = &d.facts;
    for (int i = 0; i < 3; i++) {
        clamps[i] = step_at(x, g->tower.outs[i]);
        bound(f, i, clamps[i]);
    }
    to(x, clamps[0] ? clamps[0]->in[0] : s->in[0], &f->in0, &f->in0_stride);
    if (s->op == BZ_OP_GEGLU) {
        to(x, clamps[1] ? clamps[1]->in[0] : s->in[1], &f->in1, &f->in1_stride);
    } else { /* glu: the other half of the same rows */
        f->in1 = f->in0 + f->cols;
        f->in1_stride = f->in0_stride;
        f->bound[1] = f->bound[0];
    }
    const bz_tensor made = clamps[2] ? clamps[2]->out[0] : s->out[0];
    uint32_t *const place = &f->out0;
    f->out0 = gpu_builder_place(x, made);
    d.side = gpu_make_halves(x, &made, &place, 1);
    d.x = divide_up(f->cols, 4 * 64);
    const uint32_t op = s->op == BZ_OP_GEGLU  ? GATE_GEGLU
                        : s->op == BZ_OP_SILU ? GATE_SILU
                                              : GATE_GLU;
    gpu_builder_add(x, d.side ? GPU_TOWER_GATE_HALVES : GPU_TOWER_GATE, BZ_F32,
                    (gpu_overrides){{op}}, d);
}

static void near(builder *x, const gpu_group *g)
{
    const bz_step *scores = step_at(x, g->tower.norm), *sum = step_at(x, g->tower.then),
                  *last = step_at(x, g->tower.clamp);
    const bz_step *clamps[3], *factor[2] = {NULL, NULL};
    for (const bz_step *s = x->step; s < scores; s++) {
        if (s->op == BZ_OP_MUL_VECTOR) {
            factor[factor[0] != NULL] = s;
        }
    }
    dispatch d = {.facts = gpu_builder_facts(x, scores),
                  .weights = gpu_builder_vector(x, factor[0]->w[0]),
                  .y = x->rows};
    step_facts *f = &d.facts;
    for (int i = 0; i < 3; i++) {
        clamps[i] = step_at(x, g->tower.outs[i]);
        bound(f, i, clamps[i]);
    }
    bound(f, 3, last);
    to(x, clamps[0] ? clamps[0]->in[0] : factor[0]->in[0], &f->in0, &f->in0_stride);
    to(x, clamps[1] ? clamps[1]->in[0] : factor[1]->in[0], &f->in1, &f->in1_stride);
    to(x, clamps[2] ? clamps[2]->in[0] : sum->in[1], &f->in2, &f->in2_stride);
    to(x, scores->in[2], &f->part[0].out, &f->part[0].stride);
    to(x, (last ? last : sum)->out[0], &f->out0, &f->out0_stride);
    f->scale = factor[0]->scale;
    f->eps2 = factor[1]->scale;
    f->cap = scores->scale;
    d.x = divide_up(scores->heads, 4);
    gpu_builder_add(x, GPU_TOWER_NEAR, BZ_F32, (gpu_overrides){{scores->width, scores->window}}, d);
}

void gpu_add_tower_group(builder *x, const gpu_group *g)
{
    x->rows = bz_plan_rows_of(x->s->plan, x->step->out[0]);
    switch (g->fusion) {
    case GPU_FUSE_ROWS: rows(x, g); break;
    case GPU_FUSE_HEADS: heads(x, g); break;
    case GPU_FUSE_GATE: gate(x, g); break;
    case GPU_FUSE_ATTEND_ALL: attend_all(x, x->step + 1); break;
    case GPU_FUSE_NEAR: near(x, g); break;
    default: gpu_add_tower_step(x); break; /* layer_norm, relu */
    }
}

/* ---- before a pass -------------------------------------------------------------------- */

static void write_waves(gpu_backend *b, const bz_schedule *s, const bz_step *step,
                        const bz_rows *rows)
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
        gpu_write(b->g, b->arena, gpu_place(s, step->out[0]) + (uint64_t)r * step->width * 4, row,
                  (uint64_t)step->width * 4);
    }
    free(row);
}

void gpu_write_tower(gpu_backend *b, const bz_schedule *s, const bz_rows *rows)
{
    const uint32_t block[5] = {rows->n, rows->n_out, rows->patch_cols, 0, rows->frames};
    gpu_write(b->g, b->rows, 0, block, sizeof block);
    for (size_t i = 0; i < s->plan->n_steps; i++) {
        const bz_step *step = &s->plan->steps[i];
        if (step->op == BZ_OP_INPUT) {
            const uint64_t bytes =
                (uint64_t)rows->n * bz_plan_tensor(s->plan, step->out[0])->cols * 4;
            gpu_write(b->g, b->arena, gpu_place(s, step->out[0]), rows->input, bytes);
        } else if (step->op == BZ_OP_SINUSOIDS) {
            write_waves(b, s, step, rows);
        }
    }
}
