/* What stands between the products of many rows, in one kernel: kernels/norms.wgsl. */
#include "gpu/lower/builder.h"

enum { FORM_SCALED = 1, FORM_KEEPS = 2, FORM_TIMES = 4, FORM_EIGHTS = 16 }; /* FORM there */

void gpu_add_norms(builder *x, const gpu_group *g)
{
    const bz_plan *p = x->s->plan;
    const bz_step *s = x->step, *last = s + g->count - 1;
    const gpu_binding nothing = {x->b->nothing, 0, 0};
    dispatch d = {.facts = gpu_builder_facts(x, s), .side = true, .x = 1};
    step_facts *f = &d.facts;
    gpu_binding vector[4] = {nothing, nothing, nothing, nothing};
    uint32_t n = 0, form = (g->norms.scales ? FORM_SCALED : 0) |
                           (g->norms.adds && g->norms.keeps ? FORM_KEEPS : 0);
    d.y = x->rows = bz_plan_rows_of(p, s->out[0]);
    if (g->norms.adds > 0) {
        vector[n++] = gpu_builder_vector(x, s->w[0]);
        f->in1 = gpu_builder_place(x, s[1].in[0]);
        f->in1_stride = bz_plan_tensor(p, s[1].in[0])->stride;
        f->out0 = gpu_builder_place(x, last->out[0]);
        f->out0_stride = bz_plan_tensor(p, last->out[0])->stride;
    }
    if (g->norms.adds > 1) {
        vector[n++] = gpu_builder_vector(x, s[2].w[0]);
        f->in2 = gpu_builder_place(x, s[3].in[0]);
        f->in2_stride = bz_plan_tensor(p, s[3].in[0])->stride;
    }
    if (g->norms.scales) {
        vector[n++] = gpu_builder_vector(x, last->w[0]);
    }
    uint32_t *const outs[3][2] = {{&f->out1, &f->out1_stride},
                                  {&f->part[0].out, &f->part[0].stride},
                                  {&f->part[1].out, &f->part[1].stride}};
    for (uint32_t i = 0; i < g->norms.n; i++) {
        const bz_step *norm = &p->steps[g->norms.norm[i]],
                      *end = norm + gpu_fuse_norm_steps(p, g->norms.norm[i]) - 1;
        vector[n++] = gpu_builder_vector(x, end->w[0]);
        if (g->norms.eights[i] && gpu_tiles_early(x, end->out[0], outs[i][0], outs[i][1])) {
            form |= FORM_EIGHTS << i;
        } else {
            *outs[i][0] = gpu_builder_place(x, end->out[0]);
            *outs[i][1] = bz_plan_tensor(p, end->out[0])->stride;
        }
        if (end != norm) {
            form |= (i + 1) * FORM_TIMES;
            f->scale = end->scale;
        }
    }
    d.weights = vector[0];
    d.extra[0] = vector[1];
    d.extra[1] = vector[2];
    d.extra[2] = vector[3];
    const uint32_t sums = gpu_sums_read(x, s->in[0], f, &f->in0, &f->in0_stride);
    gpu_builder_add(x, GPU_NORMS, BZ_F32,
                    (gpu_overrides){{g->norms.adds, g->norms.n, form, divide_up(s->width, 256),
                                     sums, s->width}},
                    d);
}
