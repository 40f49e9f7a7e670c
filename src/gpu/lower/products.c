/* Products of few rows with 8-bit activations, of one matrix or of each row's experts, and what is
 * fused with them: kernels/linear8.wgsl. */
#include "gpu/lower/builder.h"

enum { /* FORM of linear8.wgsl */
       FORM_ADD = 1,
       FORM_SCALE = 2,
       FORM_KEEP = 4,
       FORM_NORM = 8,
       FORM_KEEP_NORM = 16,
       FORM_GEGLU = 32,
       FORM_GATED = 64,
       FORM_SOFTCAP = 128,
       FORM_EXPERTS = 256
};

enum {
    OUTS = 2,        /* outputs that share fetched activations */
    MOST_HELD = 6144 /* activations in workgroup memory */
};

static uint32_t stride_of(const builder *x, bz_tensor t)
{
    return bz_plan_tensor(x->s->plan, t)->stride;
}

/* What comes before the products: where the input is, and how it is made. */
static uint32_t before(const builder *x, const gpu_group *g, dispatch *d)
{
    const bz_step *s = x->step, *product = s + g->products.first,
                  *norm = g->products.norms ? product - 1 : NULL;
    step_facts *f = &d->facts;
    uint32_t form = 0;
    f->in0 = gpu_builder_place(x, product->in[0]);
    f->in0_stride = stride_of(x, product->in[0]);
    if (norm) {
        form |= FORM_NORM | (g->products.keeps_norm ? FORM_KEEP_NORM : 0);
        f->in0 = gpu_builder_place(x, norm->in[0]);
        f->eps2 = norm->eps;
        d->extra[1] = gpu_builder_vector(x, norm->w[0]);
        f->in2 = gpu_builder_place(x, norm->out[0]);
        f->in2_stride = stride_of(x, norm->out[0]);
    }
    if (g->products.add) {
        const bz_step *add = s + 1, *last = g->products.scale ? s + g->products.scale : add;
        form |= FORM_ADD | (g->products.scale ? FORM_SCALE : 0) |
                (g->products.keeps_sum ? FORM_KEEP : 0);
        f->in0 = gpu_builder_place(x, s->in[0]);
        f->in0_stride = stride_of(x, s->in[0]);
        f->eps = s->eps;
        d->extra[0] = gpu_builder_vector(x, s->w[0]);
        f->in1 = gpu_builder_place(x, add->in[0]);
        f->in1_stride = stride_of(x, add->in[0]);
        f->out1 = gpu_builder_place(x, last->out[0]);
        f->out1_stride = stride_of(x, last->out[0]);
        d->extra[2] = g->products.scale ? gpu_builder_vector(x, last->w[0]) : d->extra[2];
    }
    return form;
}

/* What comes behind them: where the result goes. */
static uint32_t behind(const builder *x, const gpu_group *g, step_facts *f)
{
    const bz_step *product = x->step + g->products.first, *then = x->step + g->products.then;
    const bz_step *last = g->products.then ? then : product;
    f->out0 = gpu_builder_place(x, last->out[0]);
    f->out0_stride = stride_of(x, last->out[0]);
    if (!g->products.then) {
        return 0;
    }
    if (then->op == BZ_OP_SOFTCAP) {
        f->cap = then->scale;
        return FORM_SOFTCAP;
    }
    if (g->products.n == 2 || !then->in[1].id) {
        return FORM_GEGLU;
    }
    f->in2 = gpu_builder_place(x, then->in[1]);
    f->in2_stride = stride_of(x, then->in[1]);
    return FORM_GATED;
}

/* The second and third matrix; those of GEGLU have the first one's outputs. */
static void name_parts(const builder *x, const gpu_group *g, const gpu_weights *ws,
                       gpu_binding span, step_facts *f)
{
    const bz_step *product = x->step + g->products.first;
    uint32_t outputs = 0;
    f->part[0].first = f->part[1].first = UINT32_MAX;
    for (uint32_t i = 0; i < g->products.n; i++) {
        uint64_t at = ws->pieces[ws->first_piece[product[i].w[0].id - 1]].at.offset - span.offset;
        if (i == 0) {
            f->part0_at = (uint32_t)(at / 16);
        } else {
            f->part[i - 1].first = g->products.then ? UINT32_MAX : outputs;
            f->part[i - 1].at = (uint32_t)(at / 16);
            f->part[i - 1].out = gpu_builder_place(x, product[i].out[0]);
            f->part[i - 1].stride = stride_of(x, product[i].out[0]);
        }
        outputs +=
            i && g->products.then ? 0 : (uint32_t)bz_weight_of(ws->table, product[i].w[0])->ne[1];
    }
    f->row_count = outputs;
}

/* The matrices of a piece, and which a row takes; every slot has a workgroup of its own. */
static uint32_t experts(const builder *x, const gpu_group *g, const gpu_piece *piece, dispatch *d)
{
    const bz_step *product = x->step + g->products.first;
    const bz_weight_info *w = bz_weight_of(x->b->weights.table, product->w[0]);
    step_facts *f = &d->facts;
    if (product->op != BZ_OP_EXPERT_LINEAR) {
        return 0;
    }
    f->in1 = gpu_builder_place(x, product->in[1]);
    f->in1_stride = stride_of(x, product->in[1]);
    f->experts = product->experts_used;
    f->cols = (uint32_t)w->ne[1];
    f->slotted = bz_plan_tensor(x->s->plan, product->in[0])->cols != w->ne[0];
    f->expert0 = piece->first_row / f->cols;
    f->expert_count = piece->rows / f->cols;
    f->row_count = f->cols;
    if (g->products.then && g->products.n == 1) { /* gates, then ups */
        f->width = f->row_count = x->step[g->products.then].width;
        f->part[0].at = f->part0_at;
    }
    d->y = x->rows * f->experts;
    return FORM_EXPERTS;
}

/* Threads that share an output, by the length of its sum: as measured on an H200. */
static uint32_t lanes_for(uint32_t k)
{
    return k <= 256 ? 8 : k <= 2048 ? 16 : 32;
}

void gpu_add_products(builder *x, const gpu_group *g)
{
    const bz_step *product = x->step + g->products.first;
    const gpu_weights *ws = &x->b->weights;
    const bz_weight_info *w = bz_weight_of(ws->table, product->w[0]);
    const gpu_limits *limits = gpu_limits_of(x->b->g);
    const gpu_fuse_rules rules = {.weights = ws, .max_binding = limits->max_binding};
    x->rows = bz_plan_rows_of(x->s->plan, product->out[0]);
    const gpu_binding nothing = {x->b->nothing, 0, 0};
    uint32_t first_piece = ws->first_piece[product->w[0].id - 1],
             pieces = ws->first_piece[product->w[0].id] - first_piece;
    for (uint32_t i = 0; i < pieces; i++) {
        const gpu_piece *piece = &ws->pieces[first_piece + i];
        dispatch d = {.extra = {nothing, nothing, nothing}};
        step_facts *f = &d.facts;
        f->k = (uint32_t)w->ne[0];
        f->row_bytes = (uint32_t)gpu_row_bytes(w->type, w->ne[0]);
        f->logits = !bz_plan_tensor(x->s->plan, product->out[0])->whole_pass;
        uint32_t form = before(x, g, &d) | behind(x, g, f);
        if (pieces == 1) {
            d.weights = gpu_fuse_span(&rules, product, g->products.n);
            name_parts(x, g, ws, d.weights, f);
        } else { /* a single product, one dispatch per piece */
            d.weights = piece->at;
            f->row_count = piece->rows;
            f->part[0].first = f->part[1].first = UINT32_MAX;
            f->out0 += product->op == BZ_OP_LINEAR ? piece->first_row : 0;
            f->in2 += form & FORM_GATED ? piece->first_row : 0;
            form &= i ? ~(uint32_t)(FORM_KEEP | FORM_KEEP_NORM) : ~0u;
        }
        form |= experts(x, g, piece, &d);
        const bool whole = form & (FORM_ADD | FORM_NORM) || f->k < MOST_HELD;
        const uint32_t lanes = lanes_for(f->k);
        const bool subgroups = limits->subgroups && limits->subgroup_min >= lanes;
        const uint32_t n = form & FORM_EXPERTS ? 1 : x->rows, held = whole ? f->k : MOST_HELD;
        const gpu_overrides o = {
            {lanes, OUTS, n, held, form, subgroups ? limits->subgroup_min : 0}};
        d.x = divide_up(f->row_count, 256 / lanes * OUTS);
        if (!(form & FORM_EXPERTS)) {
            d.y = divide_up(d.x, limits->max_workgroups);
            d.x = divide_up(d.x, d.y);
        }
        gpu_builder_add(x, GPU_LINEAR8, w->type, o, d);
    }
}
