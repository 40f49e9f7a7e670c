/* Plan -> dispatches: groups (fuse.c), then offsets that suit them, then one or more dispatches for
 * each group. Counts depend on the row bucket only; workgroups of rows beyond the pass return at
 * once. Called by run/schedule.c. */
#include "gpu/lower/lower.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu/lower/builder.h"

/* ---- helpers of all files ---------------------------------------------------------------- */

uint64_t gpu_lowered_offset(const gpu_lowered *l, bz_tensor t)
{
    return t.id ? l->offset[t.id] + 4ull * bz_plan_tensor(l->plan, t)->column : 0;
}

uint32_t gpu_offset_of(const builder *x, bz_tensor t)
{
    return (uint32_t)(gpu_lowered_offset(x->out, t) / 4);
}

uint32_t gpu_stride_of(const builder *x, bz_tensor t)
{
    return bz_plan_tensor(x->plan, t)->stride;
}

gpu_params gpu_params_of(const builder *x, const bz_step *s)
{
    const bz_tensor_info *shape = bz_plan_tensor(x->plan, s->out[0].id ? s->out[0] : s->in[0]);
    gpu_params p = {0};
    p.in0 = gpu_offset_of(x, s->in[0]);
    p.in0_stride = gpu_stride_of(x, s->in[0]);
    p.in1 = gpu_offset_of(x, s->in[1]);
    p.in1_stride = gpu_stride_of(x, s->in[1]);
    p.in2 = gpu_offset_of(x, s->in[2]);
    p.in2_stride = gpu_stride_of(x, s->in[2]);
    p.out0 = gpu_offset_of(x, s->out[0]);
    p.out0_stride = gpu_stride_of(x, s->out[0]);
    p.out1 = gpu_offset_of(x, s->out[1]);
    p.out1_stride = gpu_stride_of(x, s->out[1]);
    p.cols = shape->cols;
    p.logit_rows = !shape->whole_pass;
    return p;
}

gpu_dispatch_binding gpu_bind_piece(const gpu_piece *piece)
{
    return (gpu_dispatch_binding){GPU_BOUND_WEIGHT, piece->at};
}

gpu_dispatch_binding gpu_bind_weight(const builder *x, bz_weight w)
{
    return w.id ? gpu_bind_piece(gpu_pieces_of(x->in->weights, w).piece)
                : (gpu_dispatch_binding){.kind = GPU_BOUND_EMPTY};
}

void gpu_lower_fail(builder *x, bz_status code, const char *format, ...)
{
    char text[sizeof x->err->text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    bz_fail(x->err, code, "%s", text);
    x->failed = true;
}

/* Steps after the group's range that it computes too. */
static void list_later_steps(const builder *x, gpu_dispatch *d)
{
    const gpu_group *g = x->group;
    for (uint32_t i = 0; i < GPU_MAX_PRODUCTS; i++) {
        if (g->products.adds[i] >= g->first + g->count) {
            d->later[d->n_later++] = (uint32_t)g->products.adds[i];
        }
    }
    for (uint32_t i = 0; i < g->norms.n; i++) {
        const size_t norm = g->norms.norm[i], end = norm + gpu_norm_steps(x->plan, norm);
        for (size_t s = norm; norm >= g->first + g->count && s < end; s++) {
            d->later[d->n_later++] = (uint32_t)s;
        }
    }
}

void gpu_emit(builder *x, gpu_kernel kernel, bz_type type, gpu_overrides overrides, gpu_dispatch d)
{
    gpu_lowered *l = x->out;
    if (x->failed) {
        return;
    }
    if (l->n == l->capacity) {
        const uint32_t capacity = l->capacity ? l->capacity * 2 : 256;
        gpu_dispatch *more = realloc(l->dispatches, capacity * sizeof *more);
        if (!more) {
            gpu_lower_fail(x, BZ_OUT_OF_MEMORY, "No memory to schedule a plan.");
            return;
        }
        l->dispatches = more;
        l->capacity = capacity;
    }
    d.kernel = kernel;
    d.type = type;
    d.overrides = overrides;
    d.first_step = (uint32_t)x->group->first;
    d.steps = x->group->count;
    d.rule = x->group->rule;
    list_later_steps(x, &d);
    l->dispatches[l->n++] = d;
}

uint64_t gpu_scratch_left(const builder *x)
{
    const uint64_t binding = x->in->limits->max_binding, used = x->out->arena_bytes;
    return binding > used ? binding - used : 0;
}

void gpu_reserve_scratch(builder *x, uint64_t bytes)
{
    x->out->scratch_bytes = bytes > x->out->scratch_bytes ? bytes : x->out->scratch_bytes;
}

void gpu_reserve_side(builder *x, uint64_t bytes)
{
    x->out->side_bytes = bytes > x->out->side_bytes ? bytes : x->out->side_bytes;
}

/* ---- a plan ------------------------------------------------------------------------------- */

/* The host writes rope tables before the pass begins, so their memory is never shared. */
static void place_rope_tables(const bz_plan *plan, gpu_lowered *l)
{
    for (size_t i = 0; i < plan->n_steps; i++) {
        const uint32_t table = plan->steps[i].op == BZ_OP_ROPE_TABLE ? plan->steps[i].out[0].id : 0;
        for (uint32_t t = 1; table && t < plan->n_tensors; t++) {
            l->offset[t] = plan->tensors[t].root == table ? l->arena_bytes : l->offset[t];
        }
        l->arena_bytes += table ? plan->tensors[table].bytes : 0;
    }
}

static void lower_group(builder *x, const gpu_group *g)
{
    x->group = g;
    x->step = x->plan->steps + g->first;
    switch (g->fusion) {
    case GPU_FUSE_NONE: gpu_lower_step(x); break;
    case GPU_FUSE_PRODUCTS: gpu_lower_products(x, g); break;
    case GPU_FUSE_LOW_RANKS: gpu_lower_low_ranks(x, g->count); break;
    case GPU_FUSE_NORMS: gpu_lower_norms(x, g); break;
    case GPU_FUSE_KV: gpu_lower_kv(x, g); break;
    case GPU_FUSE_GEGLU_PRODUCT:
        x->geglu = x->step++;
        x->rows = bz_plan_rows_of(x->plan, x->step->out[0]);
        gpu_lower_tiles(x);
        x->geglu = NULL;
        break;
    case GPU_FUSE_GEGLU_KEPT:
        x->geglu = x->step;
        x->step += 2;
        x->rows = bz_plan_rows_of(x->plan, x->step->out[0]);
        gpu_convert_input(x, bz_plan_tensor(x->plan, x->step->in[0])->cols, 1);
        x->geglu = NULL;
        break;
    case GPU_FUSE_ATTEND: gpu_lower_attend(x, x->step, x->step + 2); break;
    case GPU_FUSE_NORM_ADD:
    case GPU_FUSE_NORM_ADD_SCALE:
    case GPU_FUSE_NORM_ROPE:
    case GPU_FUSE_NORM_MUL: gpu_lower_norm(x, x->step + g->count - 1); break;
    default: gpu_lower_tower_group(x, g); break;
    }
    gpu_release_partial_sums(x);
    gpu_release_stored(x);
}

void gpu_lowered_free(gpu_lowered *l)
{
    for (uint32_t i = 0; i < l->n_ropes; i++) {
        free(l->ropes[i].frequency);
    }
    free(l->dispatches);
    free(l->offset);
    *l = (gpu_lowered){0};
}

bz_status gpu_lower(const gpu_lower_input *input, gpu_lowered *out, bz_error *err)
{
    const gpu_lower_input suited = gpu_suited(input), *in = &suited;
    const bz_plan *plan = in->plan;
    bz_error local = {0};
    gpu_fused fused = {0};
    builder x = {.in = in, .plan = plan, .fused = &fused, .out = out, .err = &local};
    *out = (gpu_lowered){.plan = plan, .offset = malloc(plan->n_tensors * sizeof *out->offset)};
    x.stored_f16 = calloc(plan->n_tensors, sizeof *x.stored_f16);
    if (!out->offset || !x.stored_f16) {
        gpu_lower_fail(&x, BZ_OUT_OF_MEMORY, "No memory to schedule a plan.");
    }
    x.failed = x.failed || gpu_fuse(in, &fused, &local) != BZ_OK ||
               bz_plan_place(plan, fused.group_of, out->offset, &out->arena_bytes, &local) != BZ_OK;
    if (!x.failed) {
        place_rope_tables(plan, out);
        gpu_side_reserve(&x);
    }
    for (uint32_t i = 0; i < fused.n && !x.failed; i++) {
        lower_group(&x, &fused.groups[i]);
    }
    gpu_fused_free(&fused);
    free(x.stored_f16);
    if (x.failed) {
        gpu_lowered_free(out);
        if (err) {
            *err = local;
        }
    }
    return x.failed ? local.code : BZ_OK;
}
