/* add_low_rank steps that no product computes: up to three of one input in a dispatch
 * (kernels/product/add_low_rank.wgsl). Called by lower.c and steps.c. */
#include "gpu/lower/builder.h"

enum { COLUMNS = 64, MANY_ROWS = 4 }; /* of a workgroup */

typedef struct place {
    uint32_t *first, *x, *x_stride, *low, *to, *to_stride, *cols, *rank, *high;
    float *scale;
} place;

void gpu_lower_low_ranks(builder *x, uint32_t n)
{
    const bz_step *s = x->step;
    const uint32_t slots = s->in[2].id ? s->experts_used : 1;
    gpu_dispatch d = {.params = gpu_params_of(x, s)};
    gpu_low_rank_params *p = &d.params.low_rank;
    uint32_t unused;
    const place places[GPU_MAX_PRODUCTS] = {
        {&unused, &p->in0, &p->in0_stride, &p->in1, &p->out0, &p->out0_stride, &p->cols, &p->rank0,
         &p->high0, &p->scale0},
        {&p->first1, &p->x1, &p->x1_stride, &p->low1, &p->to1, &p->to1_stride, &p->cols1, &p->rank1,
         &p->high1, &p->scale1},
        {&p->first2, &p->x2, &p->x2_stride, &p->low2, &p->to2, &p->to2_stride, &p->cols2, &p->rank2,
         &p->high2, &p->scale2}};
    bz_weight weights[GPU_MAX_PRODUCTS];
    for (uint32_t i = 0; i < n; i++) {
        weights[i] = s[i].w[0];
    }
    const gpu_binding span = gpu_span_of(x->in, weights, n);
    if (!span.size) {
        gpu_lower_fail(x, BZ_UNSUPPORTED_MODEL,
                       "The adapter's tensor %s is larger than this GPU binds at once. Run the "
                       "model on the CPU.",
                       bz_weight_of(x->in->weights->table, s->w[0])->name);
        return;
    }
    d.weights = (gpu_dispatch_binding){GPU_BOUND_WEIGHT, span};
    x->rows = bz_plan_rows_of(x->plan, s->out[0]);
    const uint32_t rows = x->rows > GPU_MAX_VECTOR_ROWS && slots == 1 ? MANY_ROWS : 1;
    gpu_overrides o = {{slots, s->in[2].id != 0, rows}};
    const bz_tensor low = {bz_plan_tensor(x->plan, s->in[1])->root};
    uint32_t low_at = gpu_offset_of(x, low);
    p->in1_stride = gpu_stride_of(x, low);
    o.value[6] = gpu_read_partial_sums(x, low, &low_at, &p->in1_stride, &p->low_split_rows);
    p->first1 = p->first2 = UINT32_MAX;
    for (uint32_t i = 0; i < n; i++) {
        const place *to = &places[i];
        const bz_weight_info *w = bz_weight_of(x->in->weights->table, s[i].w[0]);
        const bz_tensor_info *out = bz_plan_tensor(x->plan, s[i].out[0]);
        *to->first = d.x;
        *to->x = gpu_offset_of(x, s[i].in[0]);
        *to->x_stride = gpu_stride_of(x, s[i].in[0]);
        o.value[3 + i] = gpu_read_partial_sums(x, s[i].in[0], to->x, to->x_stride, &p->split_rows);
        *to->low = low_at + bz_plan_tensor(x->plan, s[i].in[1])->column;
        *to->to = gpu_offset_of(x, s[i].out[0]);
        *to->to_stride = out->stride;
        *to->cols = out->cols / slots;
        *to->rank = (uint32_t)w->ne[1];
        *to->high =
            (uint32_t)((gpu_pieces_of(x->in->weights, s[i].w[0]).piece->at.offset - span.offset) /
                       4);
        *to->scale = s[i].scale;
        d.x += divide_up(*to->cols, COLUMNS);
    }
    p->panels = divide_up(p->cols, BZ_LOW_RANK_PANEL);
    p->skip_soft = s->accepts_soft;
    d.y = divide_up(x->rows, rows) * slots;
    gpu_emit(x, GPU_ADD_LOW_RANK, BZ_F32, o, d);
}
