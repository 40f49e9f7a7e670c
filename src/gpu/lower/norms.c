/* A "norms" group: what stands between products of many rows, in one kernel
 * (kernels/norm/norms.wgsl). Called by lower.c. */
#include "gpu/lower/builder.h"

enum { /* FLAGS of norms.wgsl */
       FLAG_SCALE = 1,
       FLAG_KEEP_SUM = 2,
       FLAG_MUL = 4,
       FLAG_INT8 = 16,
       FLAG_F16 = 128,
       FLAG_F32_TOO = 1024
};

void gpu_lower_norms(builder *x, const gpu_group *g)
{
    const bz_plan *plan = x->plan;
    const bz_step *s = x->step, *last = s + g->count - 1;
    const gpu_dispatch_binding empty = {.kind = GPU_BOUND_EMPTY};
    gpu_dispatch d = {.params = gpu_params_of(x, s), .side = true, .x = 1};
    gpu_params *p = &d.params;
    p->norm.eps = s->eps;
    p->norm.scale = s->scale;
    gpu_dispatch_binding weight[4] = {empty, empty, empty, empty};
    uint32_t n = 0, flags = (g->norms.has_scale ? FLAG_SCALE : 0) |
                            (g->norms.adds && g->norms.keeps_sum ? FLAG_KEEP_SUM : 0);
    d.y = x->rows = bz_plan_rows_of(plan, s->out[0]);
    if (g->norms.adds > 0) {
        weight[n++] = gpu_bind_weight(x, s->w[0]);
        p->in1 = gpu_offset_of(x, s[1].in[0]);
        p->in1_stride = gpu_stride_of(x, s[1].in[0]);
        p->out0 = gpu_offset_of(x, last->out[0]);
        p->out0_stride = gpu_stride_of(x, last->out[0]);
    }
    if (g->norms.adds > 1) {
        weight[n++] = gpu_bind_weight(x, s[2].w[0]);
        p->in2 = gpu_offset_of(x, s[3].in[0]);
        p->in2_stride = gpu_stride_of(x, s[3].in[0]);
    }
    if (g->norms.has_scale) {
        weight[n++] = gpu_bind_weight(x, last->w[0]);
    }
    /* offset and stride of each norm; rounded: offset of the values, of the scales */
    uint32_t *const outs[GPU_MAX_NORMS][2] = {{&p->norm.norm0_out, &p->norm.norm0_stride},
                                              {&p->norm.norm1_out, &p->norm.norm1_stride},
                                              {&p->norm.norm2_out, &p->norm.norm2_stride}};
    uint32_t *const copies[GPU_MAX_NORMS][2] = {{&p->norm.copy0_out, &p->norm.copy0_stride},
                                                {&p->norm.copy1_out, &p->norm.copy1_stride},
                                                {&p->norm.copy2_out, &p->norm.copy2_stride}};
    for (uint32_t i = 0; i < g->norms.n; i++) {
        const bz_step *norm = &plan->steps[g->norms.norm[i]],
                      *end = norm + gpu_norm_steps(plan, g->norms.norm[i]) - 1;
        weight[n++] = gpu_bind_weight(x, end->w[0]);
        const gpu_form form =
            g->norms.int8[i] ? gpu_store_rounded(x, end->out[0], outs[i][0], outs[i][1]) : GPU_F32;
        if (form != GPU_F32) {
            flags |= (uint32_t)(form == GPU_INT8 ? FLAG_INT8 : FLAG_F16) << i;
            flags |= g->norms.f32[i] ? (uint32_t)FLAG_F32_TOO << i : 0;
            *copies[i][0] = gpu_offset_of(x, end->out[0]);
            *copies[i][1] = gpu_stride_of(x, end->out[0]);
        } else {
            *outs[i][0] = gpu_offset_of(x, end->out[0]);
            *outs[i][1] = gpu_stride_of(x, end->out[0]);
        }
        if (end != norm) {
            flags |= (i + 1) * FLAG_MUL;
            p->norm.scale = end->scale;
        }
    }
    d.weights = weight[0];
    d.extra[0] = weight[1];
    d.extra[1] = weight[2];
    d.extra[2] = weight[3];
    const uint32_t sums =
        gpu_read_partial_sums(x, s->in[0], &p->in0, &p->in0_stride, &p->norm.split_rows);
    const uint32_t threads = gpu_row_threads(x->in->limits, s->width);
    gpu_emit(x, GPU_NORMS, BZ_F32,
             (gpu_overrides){{g->norms.adds, g->norms.n, flags, divide_up(s->width, threads), sums,
                              s->width, threads}},
             d);
}
