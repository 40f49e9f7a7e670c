/* A "products" group: up to three products of few rows with int8 activations, of one matrix each or
 * of each row's experts, and what is fused with them (kernels/product/linear8.wgsl). Called by
 * lower.c. */
#include "gpu/lower/builder.h"

enum { /* FLAGS of linear8.wgsl */
       FLAG_ADD = 1,
       FLAG_SCALE = 2,
       FLAG_KEEP_SUM = 4,
       FLAG_NORM = 8,
       FLAG_KEEP_NORM = 16,
       FLAG_GEGLU = 32,      /* of two products, or of a matrix of gates and ups */
       FLAG_GEGLU_WITH = 64, /* of the product and another tensor */
       FLAG_SOFTCAP = 128,
       FLAG_EXPERTS = 256,
       FLAG_INT8 = 512, /* the input is int8, in the side buffer */
       FLAG_INT8_OUT = 1024,
       FLAG_COMBINE = 2048, /* the input may be partial results of attention */
       FLAG_ADAPTED = 4096,
       FLAG_LOW = 1 << 16 /* times LOW */
};

enum {
    THREADS = 256,     /* of a workgroup */
    MIN_LANES = 8,     /* threads that share an output */
    MAX_LANES = 64,    /* a workgroup stores whole vec4 of outputs */
    MAX_UNITS = 6,     /* units of 32 weights per thread; with more, more threads share an output */
    GROUP_TARGET = 96, /* workgroups that keep a large GPU busy */
    MANY_OUTPUTS = 65536, /* from here on threads compute two outputs, which share activations */
    MAX_INPUTS = 6144,    /* activations in workgroup memory at once */
    EMPTY_CHUNK = 32      /* of a kernel that keeps none there */
};

/* What comes before the products: where their input is, and how it is computed. */
static uint32_t lower_prologue(const builder *x, const gpu_group *g, gpu_dispatch *d)
{
    const bz_step *s = x->step, *product = s + g->products.first_product,
                  *norm = g->products.has_norm ? product - 1 : NULL;
    gpu_fused_product_params *p = &d->params.fused_product;
    uint32_t flags = 0;
    p->in0 = gpu_offset_of(x, product->in[0]);
    p->in0_stride = gpu_stride_of(x, product->in[0]);
    if (gpu_is_stored(x, product->in[0], GPU_INT8, &p->in0, &p->in0_stride)) {
        flags |= FLAG_INT8;
    } else if (x->partial_tensor.id && product->in[0].id == x->partial_tensor.id &&
               x->partial.split.reader_combines &&
               g == &x->fused->groups[x->fused->sum_reader[x->partial_tensor.id] - 1]) {
        flags |= FLAG_COMBINE | (g->products.keeps_input ? FLAG_KEEP_NORM : 0);
        p->norm_out = p->in0;
        p->norm_out_stride = p->in0_stride;
        d->combines = x->partial.cache;
        d->split = x->partial.split;
        p->in1 = x->partial.params.out1;
        p->head = x->partial.split.width;
    }
    if (norm) {
        flags |= FLAG_NORM | (g->products.keeps_norm ? FLAG_KEEP_NORM : 0);
        p->in0 = gpu_offset_of(x, norm->in[0]);
        p->norm_eps = norm->eps;
        d->extra[1] = gpu_bind_weight(x, norm->w[0]);
        p->norm_out = gpu_offset_of(x, norm->out[0]);
        p->norm_out_stride = gpu_stride_of(x, norm->out[0]);
    }
    if (g->products.add) {
        const bz_step *add = s + 1, *last = g->products.scale ? s + g->products.scale : add;
        flags |= FLAG_ADD | (g->products.scale ? FLAG_SCALE : 0) |
                 (g->products.keeps_sum ? FLAG_KEEP_SUM : 0);
        p->in0 = gpu_offset_of(x, s->in[0]);
        p->in0_stride = gpu_stride_of(x, s->in[0]);
        p->add_eps = s->eps;
        d->extra[0] = gpu_bind_weight(x, s->w[0]);
        p->in1 = gpu_offset_of(x, add->in[0]);
        p->in1_stride = gpu_stride_of(x, add->in[0]);
        p->out1 = gpu_offset_of(x, last->out[0]);
        p->out1_stride = gpu_stride_of(x, last->out[0]);
        d->extra[2] = g->products.scale ? gpu_bind_weight(x, last->w[0]) : d->extra[2];
    }
    return flags;
}

/* What comes after the products: where the result goes. */
static uint32_t lower_epilogue(const builder *x, const gpu_group *g, gpu_fused_product_params *p)
{
    const bz_step *epilogue = x->step + g->products.epilogue;
    const bz_tensor result =
        g->products.epilogue ? epilogue->out[0] : gpu_product_result(x->plan, g, 0);
    p->out0 = gpu_offset_of(x, result);
    p->out0_stride = gpu_stride_of(x, result);
    if (!g->products.epilogue) {
        return 0;
    }
    const uint32_t int8 =
        gpu_is_stored(x, result, GPU_INT8, &p->out0, &p->out0_stride) ? FLAG_INT8_OUT : 0;
    if (epilogue->op == BZ_OP_SOFTCAP) {
        p->cap = epilogue->scale;
        return FLAG_SOFTCAP;
    }
    if (g->products.n == 2 || !epilogue->in[1].id) {
        return FLAG_GEGLU | int8;
    }
    p->up = gpu_offset_of(x, epilogue->in[1]);
    p->up_stride = gpu_stride_of(x, epilogue->in[1]);
    return FLAG_GEGLU_WITH | int8;
}

/* Where the matrices lie in the span, in vec4s, and where the results of the second and third go.
 * With geglu the second has the first one's outputs. */
static void set_matrices(const builder *x, const gpu_group *g, gpu_binding span,
                         gpu_fused_product_params *p)
{
    const bz_step *product = x->step + g->products.first_product;
    uint32_t outputs = 0;
    p->matrix1_first = p->matrix2_first = UINT32_MAX;
    for (uint32_t i = 0; i < g->products.n; i++) {
        const gpu_piece *piece = gpu_pieces_of(x->in->weights, product[i].w[0]).piece;
        const uint32_t at = (uint32_t)((piece->at.offset - span.offset) / 16);
        const uint32_t first = g->products.epilogue ? UINT32_MAX : outputs;
        if (i == 0) {
            p->matrix0 = at;
        } else if (i == 1) {
            p->matrix1 = at;
            p->matrix1_first = first;
            p->matrix1_out = gpu_offset_of(x, gpu_product_result(x->plan, g, i));
            p->matrix1_stride = gpu_stride_of(x, gpu_product_result(x->plan, g, i));
        } else {
            p->matrix2 = at;
            p->matrix2_first = first;
            p->matrix2_out = gpu_offset_of(x, gpu_product_result(x->plan, g, i));
            p->matrix2_stride = gpu_stride_of(x, gpu_product_result(x->plan, g, i));
        }
        outputs += i && g->products.epilogue
                       ? 0
                       : (uint32_t)bz_weight_of(x->in->weights->table, product[i].w[0])->ne[1];
    }
    p->row_count = outputs;
}

/* Experts: the matrices of a piece, and the tensor of ids. Each slot of a row has workgroups of its
 * own. */
static uint32_t set_experts(const builder *x, const gpu_group *g, const gpu_piece *piece,
                            gpu_dispatch *d)
{
    const bz_step *product = x->step + g->products.first_product;
    const bz_weight_info *w = bz_weight_of(x->in->weights->table, product->w[0]);
    gpu_fused_product_params *p = &d->params.fused_product;
    if (product->op != BZ_OP_EXPERT_LINEAR) {
        return 0;
    }
    p->in1 = gpu_offset_of(x, product->in[1]);
    p->in1_stride = gpu_stride_of(x, product->in[1]);
    p->slots = product->experts_used;
    p->cols = (uint32_t)w->ne[1];
    p->input_per_slot = bz_plan_tensor(x->plan, product->in[0])->cols != w->ne[0];
    p->expert0 = piece->first_row / p->cols;
    p->expert_count = piece->rows / p->cols;
    p->row_count = p->cols;
    if (g->products.epilogue && g->products.n == 1) { /* gates, then ups */
        p->up_rows = p->row_count = x->step[g->products.epilogue].width;
        p->matrix1 = p->matrix0;
    }
    d->y = x->rows * p->slots;
    return FLAG_EXPERTS;
}

/* What adapters add to the products. */
static uint32_t set_adapters(const builder *x, const gpu_group *g, gpu_dispatch *d)
{
    gpu_fused_product_params *p = &d->params.fused_product;
    const gpu_binding span = gpu_span_of_adapters(x->in, g);
    struct {
        uint32_t *stride, *low, *rank, *high;
        float *scale;
    } to[GPU_MAX_PRODUCTS] = {
        {&p->low_stride, &p->low0, &p->rank0, &p->high0, &p->low_scale0},
        {&p->low1_stride, &p->low1, &p->rank1, &p->high1, &p->low_scale1},
        {&p->low_stride, &p->low2, &p->rank2, &p->high2, &p->low_scale2},
    };
    if (!span.size) {
        return 0;
    }
    d->extra[2] = (gpu_dispatch_binding){GPU_BOUND_WEIGHT, span};
    /* a matrix of gates and ups: both products are parts of one */
    const bool one = g->products.epilogue && !x->step[g->products.epilogue].in[1].id;
    for (uint32_t i = 0; i < (one ? 2 : g->products.n); i++) {
        const size_t step = g->products.adds[one ? 0 : i];
        if (!step) {
            continue;
        }
        const bz_step *add = &x->plan->steps[step];
        const bz_weight_info *w = bz_weight_of(x->in->weights->table, add->w[0]);
        const uint64_t at = gpu_pieces_of(x->in->weights, add->w[0]).piece->at.offset;
        *to[i].stride = gpu_stride_of(x, add->in[1]);
        *to[i].low = g->products.low ? bz_plan_tensor(x->plan, add->in[1])->column
                                     : gpu_offset_of(x, add->in[1]);
        *to[i].rank = (uint32_t)w->ne[1];
        *to[i].high = (uint32_t)((at - span.offset) / 4);
        *to[i].scale = add->scale;
        p->panels = divide_up(bz_plan_tensor(x->plan, add->out[0])->cols /
                                  (add->in[2].id ? add->experts_used : 1),
                              BZ_LOW_RANK_PANEL);
    }
    uint32_t flags = FLAG_ADAPTED;
    if (g->products.low) {
        const bz_weight_info *w = bz_weight_of(x->in->weights->table, x->step->w[0]);
        d->extra[1] = gpu_bind_weight(x, x->step->w[0]);
        p->low_values = (uint32_t)w->ne[1];
        uint32_t low = 4;
        while (low < p->low_values) {
            low *= 2;
        }
        flags |= low * FLAG_LOW;
    }
    return flags;
}

/* How many threads share an output: each has a few units of its sum, and there are enough
 * workgroups. As measured on an H200. */
static uint32_t lanes_of(uint32_t k, uint32_t outputs, uint32_t outs, uint32_t max_lanes)
{
    const uint32_t units = k / 32;
    uint32_t lanes = MIN_LANES;
    while (lanes < max_lanes && units >= 2 * lanes &&
           (units > MAX_UNITS * lanes || outputs * lanes < GROUP_TARGET * THREADS * outs)) {
        lanes *= 2;
    }
    return lanes;
}

void gpu_lower_products(builder *x, const gpu_group *g)
{
    const bz_step *product = x->step + g->products.first_product;
    const bz_weight_info *w = bz_weight_of(x->in->weights->table, product->w[0]);
    const gpu_limits *limits = x->in->limits;
    const gpu_dispatch_binding empty = {.kind = GPU_BOUND_EMPTY};
    const gpu_pieces pieces = gpu_pieces_of(x->in->weights, product->w[0]);
    const uint32_t k = (uint32_t)w->ne[0];
    x->rows = bz_plan_rows_of(x->plan, product->out[0]);
    if (g->products.int8 && (pieces.n == 1 || product->op == BZ_OP_EXPERT_LINEAR)) {
        uint32_t values, scales;
        gpu_store_rounded(x, x->step[g->products.epilogue].out[0], &values, &scales);
    }
    for (uint32_t i = 0; i < pieces.n; i++) {
        const gpu_piece *piece = &pieces.piece[i];
        gpu_dispatch d = {.extra = {empty, empty, empty}, .side = true};
        gpu_fused_product_params *p = &d.params.fused_product;
        p->row_bytes = (uint32_t)gpu_row_bytes(w->type, w->ne[0]);
        p->logit_rows = !bz_plan_tensor(x->plan, product->out[0])->whole_pass;
        uint32_t flags = lower_prologue(x, g, &d) | lower_epilogue(x, g, p);
        if (pieces.n == 1) {
            d.weights = (gpu_dispatch_binding){GPU_BOUND_WEIGHT,
                                               gpu_span_of_products(x->in, product, g->products.n)};
            set_matrices(x, g, d.weights.at, p);
        } else { /* a single product, one dispatch per piece */
            d.weights = gpu_bind_piece(piece);
            p->row_count = piece->rows;
            p->matrix1_first = p->matrix2_first = UINT32_MAX;
            p->out0 += product->op == BZ_OP_LINEAR ? piece->first_row : 0;
            p->up += flags & FLAG_GEGLU_WITH ? piece->first_row : 0;
            flags &= i ? ~(uint32_t)(FLAG_KEEP_SUM | FLAG_KEEP_NORM) : ~0u; /* written once */
        }
        flags |= set_experts(x, g, piece, &d) | set_adapters(x, g, &d);
        const bool whole = flags & (FLAG_ADD | FLAG_NORM | FLAG_COMBINE) || k < MAX_INPUTS;
        const uint32_t n = flags & FLAG_EXPERTS ? 1 : x->rows,
                       chunk = flags & FLAG_INT8 ? EMPTY_CHUNK
                               : whole           ? k
                                                 : MAX_INPUTS,
                       outs = p->row_count >= MANY_OUTPUTS ? 2 : 1;
        const uint32_t groups = flags & FLAG_EXPERTS ? p->slots : 1;
        /* int8 results are stored in groups of sixteen */
        const uint32_t max_lanes = flags & FLAG_INT8_OUT ? THREADS * outs / 16 : MAX_LANES,
                       lanes = lanes_of(k, p->row_count * groups, outs, max_lanes),
                       per_group = THREADS / lanes * outs;
        const gpu_overrides o = {{lanes, outs, n, k, chunk, flags, subgroup_of(limits)}};
        d.x = divide_up(p->row_count, per_group);
        if (!(flags & FLAG_EXPERTS)) {
            d.y = divide_up(d.x, limits->max_workgroups);
            d.x = divide_up(d.x, d.y);
            d.z = n;
        }
        gpu_emit(x, flags & FLAG_INT8 ? GPU_LINEAR8_STORED : GPU_LINEAR8, w->type, o, d);
    }
}
