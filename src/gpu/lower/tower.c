/* Steps and groups that only towers have. Called by steps.c and lower.c. */
#include "gpu/lower/builder.h"

#include <math.h>

enum {
    OP_POSITION,
    OP_CLAMP,
    OP_ADD_VECTOR,
    OP_ADD_SCALED,
    OP_RELU,
    OP_SILU,
    OP_GLU,
    OP_MUL_VECTOR,
    OP_POOL,
    OP_CONV_TIME
}; /* OP of values.wgsl */

enum { ATTEND_THREADS = 128, MAX_ROW_BLOCKS = 16, MAX_HEAD = 96 }; /* of tower/attend.wgsl */

enum { CONV_SIDE = 32 }; /* bins and outputs of a workgroup of conv.wgsl */

enum {
    ROWS_NORM = 1,
    ROWS_ADD = 2,
    ROWS_KEEP_SUM = 4,
    ROWS_OUT_NORM = 8,
    ROWS_SILU = 16
}; /* FLAGS of rows.wgsl */

enum { GATE_GEGLU, GATE_SILU, GATE_GLU }; /* OP of gate.wgsl */

enum { KIND_F32, KIND_F16, KIND_BF16 }; /* KIND of tower/weights.wgsl */

static void refuse(builder *x, const char *why)
{
    gpu_lower_fail(x, BZ_UNSUPPORTED_MODEL, "The step %s does not run on the GPU: %s.",
                   bz_op_name(x->step->op), why);
}

/* How tower/weights.wgsl reads the weights: value by value, from one binding. */
static uint32_t weight_kind(builder *x)
{
    const bz_weight w = x->step->w[0];
    if (!w.id) {
        return KIND_F32;
    }
    const bz_type type = bz_weight_of(x->in->weights->table, w)->type;
    if (gpu_pieces_of(x->in->weights, w).n != 1) {
        refuse(x, "its weights are larger than one binding");
    } else if (type != BZ_F32 && type != BZ_F16 && type != BZ_BF16) {
        refuse(x, "its weights are quantized");
    }
    return type == BZ_F16 ? KIND_F16 : type == BZ_BF16 ? KIND_BF16 : KIND_F32;
}

/* Bounds of a clamp, or none for NULL. Finite, since WGSL has no literal for infinity. */
static void set_bounds(float *low, float *high, const bz_step *clamp)
{
    *low = clamp && !isinf(clamp->low) ? clamp->low : -3e38f;
    *high = clamp && !isinf(clamp->high) ? clamp->high : 3e38f;
}

static void values(builder *x, uint32_t op)
{
    const bz_step *s = x->step;
    gpu_dispatch d = {.params = gpu_params_of(x, s), .weights = gpu_bind_weight(x, s->w[0])};
    gpu_tower_params *p = &d.params.tower;
    p->width = s->width;
    p->scale = s->scale;
    p->has_weight = s->w[0].id != 0;
    if (op == OP_CLAMP) {
        set_bounds(&p->low0, &p->high0, s);
    } else if (op == OP_POSITION) {
        p->positions = (uint32_t)bz_weight_of(x->in->weights->table, s->w[0])->ne[1];
    }
    d.x = divide_up(d.params.cols, 64);
    d.y = x->rows;
    gpu_emit(x, GPU_TOWER_VALUES, BZ_F32, (gpu_overrides){{op, weight_kind(x)}}, d);
}

static void attend_all(builder *x, const bz_step *clamp)
{
    const bz_step *s = x->step;
    /* a thread computes 8 rows by 8 columns; `down` threads by `across` threads are a workgroup */
    const uint32_t across = divide_up(s->width, 8), fit = ATTEND_THREADS / across,
                   down = fit < MAX_ROW_BLOCKS ? fit : MAX_ROW_BLOCKS;
    uint32_t slice = across < 4 ? across : 4; /* divides the vec4s of a head */
    while (2 * across % slice) {
        slice--;
    }
    gpu_dispatch d = {
        .params = gpu_params_of(x, s), .x = s->heads, .y = divide_up(x->rows, 8 * down)};
    gpu_tower_params *p = &d.params.tower;
    if (s->width > MAX_HEAD || s->width % 4 ||
        (p->in0 | p->in0_stride | p->in1 | p->in1_stride | p->in2 | p->in2_stride | p->out0 |
         p->out0_stride) %
            4) {
        refuse(x, "its heads are too wide or not multiples of 4");
    }
    set_bounds(&p->low0, &p->high0, clamp);
    p->out0 = gpu_offset_of(x, clamp ? clamp->out[0] : s->out[0]);
    if (!gpu_lower_matrix_attention(x, &d)) {
        gpu_emit(x, GPU_TOWER_ATTEND, BZ_F32, (gpu_overrides){{s->width, down, slice}}, d);
    }
}

void gpu_lower_tower_step(builder *x)
{
    const bz_step *s = x->step;
    switch (s->op) {
    case BZ_OP_INPUT:
    case BZ_OP_SINUSOIDS: break; /* written by the host */
    case BZ_OP_POSITION_EMBED: values(x, OP_POSITION); break;
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
        gpu_dispatch d = {
            .params = gpu_params_of(x, s), .weights = gpu_bind_weight(x, s->w[0]), .y = x->rows};
        d.params.tower.width = s->width;
        d.params.tower.eps = s->eps;
        d.x = d.params.cols / s->width;
        d.params.out0 =
            gpu_offset_of(x, s[x->group->count - 1].out[0]); /* relu has the same shape */
        gpu_emit(x, GPU_TOWER_LAYER_NORM, BZ_F32,
                 (gpu_overrides){{weight_kind(x), x->group->count > 1}}, d);
        break;
    }
    case BZ_OP_ATTEND_ALL: attend_all(x, NULL); break;
    case BZ_OP_CONV: {
        gpu_dispatch d = {
            .params = gpu_params_of(x, s), .weights = gpu_bind_weight(x, s->w[0]), .y = x->rows};
        gpu_tower_params *p = &d.params.tower;
        p->outputs = (uint32_t)bz_weight_of(x->in->weights->table, s->w[0])->ne[1];
        p->width = s->width;
        p->frames = s->frames;
        p->channels = s->channels;
        d.x = divide_up(p->outputs, CONV_SIDE) * divide_up(s->width / 2, CONV_SIDE);
        d.z = s->frames / 2;
        gpu_emit(x, GPU_TOWER_CONV, BZ_F32, (gpu_overrides){{weight_kind(x)}}, d);
        break;
    }
    case BZ_OP_LOCAL_SCORES:
    case BZ_OP_LOCAL_SUM: {
        const bool sum = s->op == BZ_OP_LOCAL_SUM;
        gpu_dispatch d = {.params = gpu_params_of(x, s), .y = x->rows};
        d.params.tower.width = s->width;
        d.params.tower.heads = s->heads;
        d.params.tower.window = s->window;
        d.params.tower.scale = s->scale;
        d.x = divide_up(sum ? d.params.cols : s->heads, 64);
        gpu_emit(x, GPU_TOWER_LOCAL, BZ_F32, (gpu_overrides){{sum}}, d);
        break;
    }
    default: refuse(x, "it has no kernel"); break;
    }
}

/* ---- groups -----------------------------------------------------------------------------------
 */

/* Step `number` of the group, from 1; 0: NULL. */
static const bz_step *step_at(const builder *x, uint8_t number)
{
    return number ? x->step + number - 1 : NULL;
}

static void locate(const builder *x, bz_tensor t, uint32_t *offset, uint32_t *stride)
{
    *offset = gpu_offset_of(x, t);
    *stride = gpu_stride_of(x, t);
}

static void lower_rows(builder *x, const gpu_group *g)
{
    const bz_step *norm = step_at(x, g->rows.norm), *add = step_at(x, g->rows.add);
    const bz_step *out_norm = step_at(x, g->rows.out_norm), *first = x->step;
    gpu_dispatch d = {.weights = gpu_bind_weight(x, norm ? norm->w[0] : BZ_NO_WEIGHT),
                      .extra = {gpu_bind_weight(x, out_norm ? out_norm->w[0] : BZ_NO_WEIGHT)},
                      .x = 1,
                      .y = x->rows};
    gpu_tower_params *p = &d.params.tower;
    uint32_t flags =
        (norm ? ROWS_NORM : 0) | (out_norm ? ROWS_OUT_NORM : 0) | (g->rows.silu ? ROWS_SILU : 0);
    locate(x, first->in[0], &p->in0, &p->in0_stride);
    set_bounds(&p->low0, &p->high0, step_at(x, g->rows.clamp));
    p->eps = norm ? norm->eps : 0;
    p->out_eps = out_norm ? out_norm->eps : 0;
    if (add) {
        const bool keeps = bz_plan_tensor(x->plan, add->out[0])->last >=
                           (int32_t)(first - x->plan->steps + (ptrdiff_t)g->count);
        flags |= ROWS_ADD | (keeps ? ROWS_KEEP_SUM : 0);
        locate(x, add->in[0], &p->in1, &p->in1_stride);
        locate(x, add->out[0], &p->out1, &p->out1_stride);
        p->scale = add->scale;
    }
    bz_tensor written[GPU_MAX_ROWS_OUTS] = {{0}};
    uint32_t *const offsets[GPU_MAX_ROWS_OUTS] = {&p->out0, &p->copy1_out, &p->copy2_out},
                    *const strides[] = {&p->out0_stride, &p->copy1_stride, &p->copy2_stride};
    float *const low[] = {&p->low1, &p->low2, &p->low3}, *const high[] = {&p->high1, &p->high2,
                                                                          &p->high3};
    for (uint32_t i = 0; i < g->rows.n_outs; i++) {
        const bz_step *s = step_at(x, g->rows.outs[i]);
        set_bounds(low[i], high[i], s->op == BZ_OP_CLAMP ? s : NULL);
        locate(x, s->out[0], offsets[i], strides[i]);
        written[i] = s->out[0];
    }
    d.side = gpu_store_f16(x, written, offsets, g->rows.n_outs);
    const uint32_t vec4s = bz_plan_tensor(x->plan, first->in[0])->cols / 4;
    gpu_emit(x, d.side ? GPU_TOWER_ROWS_F16 : GPU_TOWER_ROWS, BZ_F32,
             (gpu_overrides){{flags, g->rows.n_outs, vec4s}}, d);
}

static void lower_heads(builder *x, const gpu_group *g)
{
    const bz_step *norm = step_at(x, g->heads.norm), *rope = step_at(x, g->heads.rope),
                  *last = rope ? rope : norm;
    gpu_dispatch d = {
        .params = gpu_params_of(x, norm), .weights = gpu_bind_weight(x, norm->w[0]), .y = x->rows};
    gpu_tower_params *p = &d.params.tower;
    p->eps = norm->eps;
    locate(x, x->step->in[0], &p->in0, &p->in0_stride);
    locate(x, last->out[0], &p->out0, &p->out0_stride);
    if (rope) {
        locate(x, rope->in[1], &p->in1, &p->in1_stride);
    }
    set_bounds(&p->low0, &p->high0, step_at(x, g->heads.clamp));
    d.x = divide_up(p->cols / norm->width, 4);
    const uint32_t axis = rope ? rope->width : norm->width,
                   all = p->in0 | p->in0_stride | p->out0 | p->out0_stride |
                         (rope ? p->in1 | p->in1_stride : 0);
    const bool aligned = norm->width % 4 == 0 && (!rope || axis % 8 == 0) && all % 4 == 0;
    uint32_t *const offset = &p->out0;
    d.side = aligned && gpu_store_f16(x, &last->out[0], &offset, 1);
    const gpu_kernel kernel = d.side    ? GPU_TOWER_HEADS_F16
                              : aligned ? GPU_TOWER_HEADS
                                        : GPU_TOWER_HEADS_ANY;
    gpu_emit(x, kernel, BZ_F32,
             (gpu_overrides){{norm->width, axis, rope != NULL, norm->w[0].id != 0}}, d);
}

static void lower_gate(builder *x, const gpu_group *g)
{
    const bz_step *s = step_at(x, g->gate.op), *a = step_at(x, g->gate.clamp[0]),
                  *b = step_at(x, g->gate.clamp[1]), *out = step_at(x, g->gate.clamp_out);
    gpu_dispatch d = {.params = gpu_params_of(x, s), .y = x->rows};
    gpu_tower_params *p = &d.params.tower;
    set_bounds(&p->low0, &p->high0, a);
    set_bounds(&p->low1, &p->high1, b);
    set_bounds(&p->low2, &p->high2, out);
    locate(x, a ? a->in[0] : s->in[0], &p->in0, &p->in0_stride);
    if (s->op == BZ_OP_GEGLU) {
        locate(x, b ? b->in[0] : s->in[1], &p->in1, &p->in1_stride);
    } else { /* glu: the other half of the same rows */
        p->in1 = p->in0 + p->cols;
        p->in1_stride = p->in0_stride;
        set_bounds(&p->low1, &p->high1, a);
    }
    const bz_tensor written = out ? out->out[0] : s->out[0];
    uint32_t *const offset = &p->out0;
    p->out0 = gpu_offset_of(x, written);
    d.side = gpu_store_f16(x, &written, &offset, 1);
    d.x = divide_up(p->cols, 4 * 64);
    const uint32_t op = s->op == BZ_OP_GEGLU  ? GATE_GEGLU
                        : s->op == BZ_OP_SILU ? GATE_SILU
                                              : GATE_GLU;
    gpu_emit(x, d.side ? GPU_TOWER_GATE_F16 : GPU_TOWER_GATE, BZ_F32, (gpu_overrides){{op}}, d);
}

static void lower_local_attend(builder *x, const gpu_group *g)
{
    const bz_step *scores = step_at(x, g->local.scores), *sum = step_at(x, g->local.sum),
                  *clamp_out = step_at(x, g->local.clamp_out);
    const bz_step *clamp[3], *scaled[2] = {NULL, NULL}; /* mul_vector of queries and of keys */
    for (const bz_step *s = x->step; s < scores; s++) {
        if (s->op == BZ_OP_MUL_VECTOR) {
            scaled[scaled[0] != NULL] = s;
        }
    }
    gpu_dispatch d = {.params = gpu_params_of(x, scores),
                      .weights = gpu_bind_weight(x, scaled[0]->w[0]),
                      .y = x->rows};
    gpu_tower_params *p = &d.params.tower;
    for (int i = 0; i < 3; i++) {
        clamp[i] = step_at(x, g->local.clamp[i]);
    }
    set_bounds(&p->low0, &p->high0, clamp[0]);
    set_bounds(&p->low1, &p->high1, clamp[1]);
    set_bounds(&p->low2, &p->high2, clamp[2]);
    set_bounds(&p->low3, &p->high3, clamp_out);
    p->heads = scores->heads;
    locate(x, clamp[0] ? clamp[0]->in[0] : scaled[0]->in[0], &p->in0, &p->in0_stride);
    locate(x, clamp[1] ? clamp[1]->in[0] : scaled[1]->in[0], &p->in1, &p->in1_stride);
    locate(x, clamp[2] ? clamp[2]->in[0] : sum->in[1], &p->in2, &p->in2_stride);
    locate(x, scores->in[2], &p->far, &p->far_stride);
    locate(x, (clamp_out ? clamp_out : sum)->out[0], &p->out0, &p->out0_stride);
    p->scale = scaled[0]->scale;
    p->key_scale = scaled[1]->scale;
    p->cap = scores->scale;
    d.x = divide_up(scores->heads, 4);
    gpu_emit(x, GPU_TOWER_ATTEND_LOCAL, BZ_F32, (gpu_overrides){{scores->width, scores->window}},
             d);
}

void gpu_lower_tower_group(builder *x, const gpu_group *g)
{
    x->rows = bz_plan_rows_of(x->plan, x->step->out[0]);
    switch (g->fusion) {
    case GPU_FUSE_ROWS: lower_rows(x, g); break;
    case GPU_FUSE_HEADS: lower_heads(x, g); break;
    case GPU_FUSE_GATE: lower_gate(x, g); break;
    case GPU_FUSE_ATTEND_ALL: attend_all(x, x->step + 1); break;
    case GPU_FUSE_LOCAL_ATTEND: lower_local_attend(x, g); break;
    default: gpu_lower_tower_step(x); break; /* layer_norm relu */
    }
}
