/* Fusion of text models: the rules, and the walk over the plan that applies them. Called by
 * lower.c.
 */
#include "gpu/lower/fuse.h"

#include "gpu/lower/forms.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_PRODUCT_NORM = 4096, /* values of a row that linear8 normalizes */
    MAX_HEADS = 32,          /* whose parts linear8 combines, */
    MAX_COMBINED = 8192,     /* values of a row that linear8 combines from parts of attention */
    MAX_ROW = 3840,       /* values of a row that norm kernels keep, beside 256 more, in 16 KiB */
    MAX_NORM_WEIGHTS = 4, /* weight vectors that norms.wgsl binds */
    MAX_SMALL_LOW = 8192, /* weights of A that every workgroup of linear8 multiplies for itself, */
    MAX_LOW_VALUES = 64   /* and results */
};

/* Is `reader` the last step that reads `t`, as exactly one of its inputs? */
static bool only_read_by(const bz_plan *p, bz_tensor t, size_t reader)
{
    const bz_tensor_info *i = bz_plan_tensor(p, t);
    int times = 0;
    for (int k = 0; k < 3; k++) {
        times += bz_plan_tensor(p, p->steps[reader].in[k])->root == t.id;
    }
    return i->root == t.id && i->last == (int32_t)reader && times == 1;
}

static bool read_after(const bz_plan *p, bz_tensor t, size_t step)
{
    return bz_plan_tensor(p, t)->last > (int32_t)step;
}

/* Step `at`, if it is of that kind and the only reader of t; else NULL. */
static const bz_step *takes(const bz_plan *p, size_t at, bz_op op, int input, bz_tensor t)
{
    const bz_step *s = at < p->n_steps ? &p->steps[at] : NULL;
    return s && s->op == op && s->in[input].id == t.id && only_read_by(p, t, at) ? s : NULL;
}

/* The same of what step at - 1 wrote. */
static const bz_step *follows(const bz_plan *p, size_t at, bz_op op, int input)
{
    return takes(p, at, op, input, p->steps[at - 1].out[0]);
}

/* A norm of whole rows that fit into workgroup memory. */
static bool is_row_norm(const bz_plan *p, size_t at)
{
    const bz_step *s = at < p->n_steps ? &p->steps[at] : NULL;
    return s && s->op == BZ_OP_RMS_NORM && s->w[0].id &&
           s->width == bz_plan_tensor(p, s->in[0])->cols && s->width <= MAX_PRODUCT_NORM;
}

/* Can rows be read as vec4? */
static bool has_vec4_rows(const bz_plan *p, bz_tensor t)
{
    const bz_tensor_info *i = bz_plan_tensor(p, t);
    return (i->stride | i->column) % 4 == 0;
}

/* ---- products ------------------------------------------------------------------------- */

/* Is t read, and by products only? */
static bool is_for_products(const bz_plan *p, bz_tensor t)
{
    const bz_tensor_info *info = bz_plan_tensor(p, t);
    bool only = info->root == t.id && info->last < (int32_t)p->n_steps;
    for (int32_t i = info->first + 1; i <= info->last && only; i++) {
        const bz_step *s = &p->steps[i];
        for (int k = 0; k < 3; k++) {
            const bool reads = bz_plan_tensor(p, s->in[k])->root == t.id;
            only = only && (!reads || (k == 0 && s->in[0].id == t.id &&
                                       (s->op == BZ_OP_LINEAR || s->op == BZ_OP_EXPERT_LINEAR)));
        }
    }
    return only;
}

/* Does every piece hold whole experts? */
static bool has_whole_experts(const gpu_weight_map *map, bz_weight w)
{
    const uint64_t outputs = bz_weight_of(map->table, w)->ne[1];
    const gpu_pieces pieces = gpu_pieces_of(map, w);
    bool whole = true;
    for (uint32_t i = 0; i < pieces.n; i++) {
        whole = whole && pieces.piece[i].rows % outputs == 0;
    }
    return whole;
}

static bool is_product(const bz_step *s)
{
    return s->op == BZ_OP_LINEAR || s->op == BZ_OP_EXPERT_LINEAR;
}

bool gpu_is_low_rank(const bz_plan *p, size_t at)
{
    const bz_step *s = &p->steps[at];
    if (!is_product(s) || bz_weight_of(p->weights, s->w[0])->type != BZ_F32) {
        return false;
    }
    const bz_tensor_info *t = bz_plan_tensor(p, s->out[0]);
    bool only = t->last > (int32_t)at && t->last < (int32_t)p->n_steps;
    for (int32_t i = t->first + 1; i <= t->last && only; i++) {
        for (int k = 0; k < 3; k++) {
            only = only && (bz_plan_tensor(p, p->steps[i].in[k])->root != s->out[0].id ||
                            (k == 1 && p->steps[i].op == BZ_OP_ADD_LOW_RANK));
        }
    }
    return only;
}

/* Is its input read by a product whose weights are integers? Then it takes int8 rows, too. */
static bool is_packed_low_rank(const bz_plan *p, size_t at)
{
    const bz_step *s = &p->steps[at];
    const bz_tensor_info *x = bz_plan_tensor(p, s->in[0]);
    bool beside = false;
    for (int32_t i = (int32_t)at + 1; i <= x->last && i < (int32_t)p->n_steps; i++) {
        beside = beside || (is_product(&p->steps[i]) && p->steps[i].in[0].id == s->in[0].id &&
                            gpu_kernels_packed(bz_weight_of(p->weights, p->steps[i].w[0])->type));
    }
    return beside && bz_weight_of(p->weights, s->w[0])->ne[0] % 32 == 0 && gpu_is_low_rank(p, at);
}

/* A product of few rows that linear8 computes. */
static bool is_packed_product(const gpu_lower_input *in, size_t at)
{
    const bz_plan *p = in->plan;
    const bz_step *s = at < p->n_steps ? &p->steps[at] : NULL;
    if (!s || !in->packed || !is_product(s) ||
        bz_plan_rows_of(p, s->out[0]) > GPU_MAX_VECTOR_ROWS) {
        return false;
    }
    const bz_weight_info *w = bz_weight_of(p->weights, s->w[0]);
    return (gpu_kernels_packed(w->type) || is_packed_low_rank(p, at)) && w->ne[1] % 4 == 0 &&
           has_vec4_rows(p, s->in[0]) && has_vec4_rows(p, s->out[0]) &&
           (s->op == BZ_OP_LINEAR || has_whole_experts(in->weights, s->w[0]));
}

gpu_binding gpu_span_of(const gpu_lower_input *in, const bz_weight *weights, uint32_t n)
{
    gpu_binding span = {0};
    for (uint32_t i = 0; i < n; i++) {
        const gpu_pieces pieces = gpu_pieces_of(in->weights, weights[i]);
        if (pieces.n != 1 || (i && pieces.piece->at.buffer != span.buffer)) {
            return (gpu_binding){0};
        }
        const gpu_binding at = pieces.piece->at;
        span = i ? span : at;
        const uint64_t end = at.offset + at.size > span.offset + span.size
                                 ? at.offset + at.size
                                 : span.offset + span.size;
        span.offset = at.offset < span.offset ? at.offset : span.offset;
        span.size = end - span.offset;
    }
    return span.size <= in->limits->max_binding ? span : (gpu_binding){0};
}

gpu_binding gpu_span_of_products(const gpu_lower_input *in, const bz_step *products, uint32_t n)
{
    bz_weight weights[GPU_MAX_PRODUCTS];
    for (uint32_t i = 0; i < n; i++) {
        weights[i] = products[i].w[0];
    }
    return gpu_span_of(in, weights, n);
}

gpu_binding gpu_span_of_adapters(const gpu_lower_input *in, const gpu_group *g)
{
    bz_weight weights[GPU_MAX_PRODUCTS];
    uint32_t n = 0;
    for (uint32_t i = 0; i < GPU_MAX_PRODUCTS; i++) {
        if (g->products.adds[i]) {
            weights[n++] = in->plan->steps[g->products.adds[i]].w[0];
        }
    }
    return gpu_span_of(in, weights, n);
}

bz_tensor gpu_product_result(const bz_plan *plan, const gpu_group *g, uint32_t i)
{
    const size_t add = g->products.adds[i];
    return plan->steps[add ? add : g->first + g->products.first_product + i].out[0];
}

/* Does step `at` multiply the same input as the product `like`, of the same type? */
static bool joins(const gpu_lower_input *in, size_t at, const bz_step *like, uint32_t n)
{
    const bz_plan *p = in->plan;
    const bz_step *s = &p->steps[at];
    return is_packed_product(in, at) && s->op == like->op && s->in[0].id == like->in[0].id &&
           s->in[1].id == like->in[1].id &&
           bz_weight_of(p->weights, s->w[0])->type == bz_weight_of(p->weights, like->w[0])->type &&
           gpu_span_of_products(in, like, n + 1).size > 0;
}

/* The step that adds to product `at` what adapters computed before step `first`; 0: none. */
static size_t adapter_step(const gpu_lower_input *in, size_t at, size_t first)
{
    const bz_plan *p = in->plan;
    const bz_step *product = &p->steps[at];
    const int32_t last = bz_plan_tensor(p, product->out[0])->last;
    const bz_step *add =
        last > (int32_t)at ? takes(p, (size_t)last, BZ_OP_ADD_LOW_RANK, 0, product->out[0]) : NULL;
    if (!add || add->accepts_soft || add->in[2].id != product->in[1].id) {
        return 0;
    }
    const uint32_t low = bz_plan_tensor(p, add->in[1])->root;
    return p->tensors[low].first < (int32_t)first ? (size_t)last : 0;
}

/* Which products of a group get what adapters add, in the same kernel: that has no place for it
 * beside a norm, which stands before the adapters' own product anyway. */
static void match_adapters(const gpu_lower_input *in, gpu_group *g)
{
    const size_t at = g->first + g->products.first_product;
    const bz_weight w = in->plan->steps[at].w[0];
    for (uint32_t i = 0; i < GPU_MAX_PRODUCTS; i++) {
        const bool may = in->fuse && i < g->products.n && (at == g->first || g->products.low) &&
                         gpu_pieces_of(in->weights, w).n == 1;
        g->products.adds[i] = may ? adapter_step(in, at + i, at) : 0;
    }
    if (gpu_span_of_adapters(in, g).size == 0) {
        memset(g->products.adds, 0, sizeof g->products.adds);
    }
}

/* The step after those of a group's adapters that stand at `at`. */
static size_t skip_adapters(const gpu_group *g, size_t at)
{
    for (uint32_t i = 0; i < GPU_MAX_PRODUCTS; i++) {
        at += g->products.adds[i] == at;
    }
    return at;
}

/* geglu or softcap at step `at`, after the products of the group. */
static bool ends_with(const bz_plan *p, size_t at, const gpu_group *g)
{
    const bz_step *s = at < p->n_steps ? &p->steps[at] : NULL,
                  *product = &p->steps[g->first + g->products.first_product];
    const uint32_t n = g->products.n;
    if (!s || n > 2) {
        return false;
    }
    const bz_tensor result = gpu_product_result(p, g, 0);
    if (s->op == BZ_OP_GEGLU && s->in[1].id && n == 2) {
        return s->in[0].id == result.id && s->in[1].id == gpu_product_result(p, g, 1).id &&
               only_read_by(p, s->in[0], at) && only_read_by(p, s->in[1], at);
    }
    const bool experts = product->op == BZ_OP_EXPERT_LINEAR;
    if (s->op == BZ_OP_GEGLU && !s->in[1].id) { /* one matrix holds gates and ups */
        return n == 1 && experts && takes(p, at, BZ_OP_GEGLU, 0, result) && s->width % 4 == 0 &&
               2 * s->width == bz_weight_of(p->weights, product->w[0])->ne[1];
    }
    if (experts) {
        return false;
    }
    if (s->op == BZ_OP_GEGLU && n == 1) {
        return takes(p, at, BZ_OP_GEGLU, 0, result) && s->in[1].id != s->in[0].id &&
               has_vec4_rows(p, s->in[1]);
    }
    return n == 1 && takes(p, at, BZ_OP_SOFTCAP, 0, result);
}

/* Is the result of the geglu at step `at` read by packed products of few rows only, and do they
 * read it as it is? */
static bool is_for_packed(const gpu_lower_input *in, size_t at)
{
    const bz_plan *p = in->plan;
    const bz_tensor t = p->steps[at].out[0];
    const bz_tensor_info *info = bz_plan_tensor(p, t);
    bool only = p->steps[at].op == BZ_OP_GEGLU && info->cols % 32 == 0 && is_for_products(p, t);
    for (int32_t i = info->first + 1; i <= info->last && only; i++) {
        const bz_step *s = &p->steps[i];
        const uint32_t inputs = s->op == BZ_OP_EXPERT_LINEAR ? s->experts_used : 1;
        only = s->in[0].id != t.id ||
               (is_packed_product(in, (size_t)i) &&
                info->cols == inputs * bz_weight_of(p->weights, s->w[0])->ne[0]);
    }
    return only;
}

/* Is step `at` a product of adapters so small that each workgroup of the next product, of the same
 * input, can repeat it? Attention's parts are combined by one of the two only. */
static bool is_small_low_rank(const gpu_lower_input *in, size_t at)
{
    const bz_plan *p = in->plan;
    const bz_step *s = &p->steps[at];
    if (!in->fuse || s->op != BZ_OP_LINEAR || !is_packed_product(in, at) ||
        !gpu_is_low_rank(p, at) || p->steps[at + 1].op != BZ_OP_LINEAR ||
        p->steps[at + 1].in[0].id != s->in[0].id) {
        return false;
    }
    const bz_weight_info *w = bz_weight_of(p->weights, s->w[0]);
    const int32_t writer = bz_plan_tensor(p, s->in[0])->first;
    return w->ne[0] * w->ne[1] <= MAX_SMALL_LOW && w->ne[1] <= MAX_LOW_VALUES &&
           gpu_pieces_of(in->weights, s->w[0]).n == 1 &&
           (writer < 0 || p->steps[writer].op != BZ_OP_ATTEND);
}

/* Are the steps that read the result of step `at` all computed by the group? */
static bool adds_all(const bz_plan *p, const gpu_group *g, size_t at)
{
    const bz_tensor t = p->steps[at].out[0];
    uint32_t readers = 0, mine = 0;
    for (int32_t i = (int32_t)at + 1; i <= bz_plan_tensor(p, t)->last; i++) {
        readers += bz_plan_tensor(p, p->steps[i].in[1])->root == t.id;
    }
    for (uint32_t i = 0; i < GPU_MAX_PRODUCTS; i++) {
        const size_t add = g->products.adds[i];
        mine += add && bz_plan_tensor(p, p->steps[add].in[1])->root == t.id;
    }
    return mine == readers;
}

/* With fusing off this matches a product alone: then it only chooses the kernel. low: try to
 * compute the adapters' product, too. */
static bool match_products_with(const gpu_lower_input *in, size_t first, bool low, gpu_group *g)
{
    const bz_plan *p = in->plan;
    size_t at = first;
    bz_tensor input = BZ_NO_TENSOR, sum = BZ_NO_TENSOR;
    if (in->fuse && is_row_norm(p, at) && follows(p, at + 1, BZ_OP_ADD, 1) &&
        p->steps[at + 1].scale == 1.0f) {
        g->products.add = 1;
        at += 2;
        if (follows(p, at, BZ_OP_SCALE, 0)) {
            g->products.scale = (uint8_t)(at - first);
            at++;
        }
        input = sum = p->steps[at - 1].out[0];
        while (at < p->n_steps && p->steps[at].op == BZ_OP_CUT) {
            at++;
        }
    }
    if (in->fuse && is_row_norm(p, at) && (!sum.id || p->steps[at].in[0].id == sum.id)) {
        g->products.has_norm = true;
        input = p->steps[at++].out[0];
    }
    if (low) {
        if (at != first || !is_small_low_rank(in, at)) {
            return false;
        }
        g->products.low = true;
        at++;
    }
    if (!is_packed_product(in, at) || (input.id && p->steps[at].in[0].id != input.id)) {
        return false;
    }
    const bz_step *product = &p->steps[at];
    const bool experts = product->op == BZ_OP_EXPERT_LINEAR;
    g->first = first;
    g->products.first_product = (uint8_t)(at - first);
    do {
        g->products.n++;
        at++;
    } while (in->fuse && g->products.n < (experts ? 2 : GPU_MAX_PRODUCTS) &&
             joins(in, at, product, g->products.n));
    match_adapters(in, g);
    if (experts && g->products.n == 2 && !ends_with(p, skip_adapters(g, at), g)) {
        g->products.n = 1; /* the kernel writes one result of experts */
        at--;
        match_adapters(in, g);
    }
    if (low && !adds_all(p, g, first)) {
        return false;
    }
    g->products.keeps_sum = sum.id && read_after(p, sum, at - 1);
    g->products.keeps_norm = g->products.has_norm && read_after(p, input, at - 1);
    if (experts && (g->products.add || g->products.keeps_norm)) {
        return false; /* a row may have no workgroup that would write them */
    }
    at = skip_adapters(g, at);
    if (in->fuse && ends_with(p, at, g) && !g->products.keeps_norm) {
        g->products.epilogue = (uint8_t)(at - first);
        at++;
        /* a geglu with another tensor, the PLE gate, has too few outputs for groups of sixteen */
        const bool gate_and_up = !p->steps[at - 1].in[1].id || g->products.n == 2;
        g->products.int8 = gate_and_up && is_for_packed(in, at - 1);
    }
    g->fusion = GPU_FUSE_PRODUCTS;
    g->count = (uint32_t)(at - first);
    return true;
}

static bool match_products(const gpu_lower_input *in, size_t first, gpu_group *g)
{
    const bool low = match_products_with(in, first, true, g);
    if (!low) {
        *g = (gpu_group){0};
    }
    return low || match_products_with(in, first, false, g);
}

/* Sums with B for products of one input that no kernel of these products computes. */
static bool match_low_ranks(const gpu_lower_input *in, size_t first, gpu_group *g)
{
    const bz_plan *p = in->plan;
    const bz_step *s = &p->steps[first];
    bz_weight weights[GPU_MAX_PRODUCTS];
    g->fusion = GPU_FUSE_LOW_RANKS;
    while (g->count < GPU_MAX_PRODUCTS && first + g->count < p->n_steps) {
        const bz_step *t = s + g->count;
        weights[g->count] = t->w[0];
        if (t->op != BZ_OP_ADD_LOW_RANK || t->in[2].id || t->accepts_soft ||
            bz_plan_tensor(p, t->in[1])->root != bz_plan_tensor(p, s->in[1])->root ||
            gpu_span_of(in, weights, g->count + 1).size == 0) {
            break;
        }
        g->count++;
    }
    return g->count > 1;
}

/* The result of geglu is quantized as it is computed. */
static bool match_geglu_product(const gpu_lower_input *in, size_t first, gpu_group *g)
{
    const bz_plan *p = in->plan;
    const bz_step *s = &p->steps[first], *product = follows(p, first + 1, BZ_OP_LINEAR, 0);
    product = product ? product : follows(p, first + 1, BZ_OP_EXPERT_LINEAR, 0);
    if (s->op != BZ_OP_GEGLU || !product || !in->packed ||
        bz_plan_rows_of(p, product->out[0]) <= GPU_MAX_VECTOR_ROWS) {
        return false;
    }
    const bz_weight_info *w = bz_weight_of(p->weights, product->w[0]);
    g->fusion = GPU_FUSE_GEGLU_PRODUCT;
    g->count = 2;
    return gpu_kernels_tile8(w->type) && (s->in[1].id || s->width == w->ne[0]);
}

/* The same, where adapters read the result as f32 before that product does. */
static bool match_geglu_kept(const gpu_lower_input *in, size_t first, gpu_group *g)
{
    const bz_plan *p = in->plan;
    const bz_step *s = &p->steps[first], *product = s + 2;
    if (s->op != BZ_OP_GEGLU || !s->in[1].id || first + 2 >= p->n_steps || !in->packed ||
        product->op != BZ_OP_LINEAR || product->in[0].id != s->out[0].id ||
        s[1].in[0].id != s->out[0].id || s[1].op != BZ_OP_LINEAR ||
        bz_plan_rows_of(p, s->out[0]) <= GPU_MAX_VECTOR_ROWS) {
        return false;
    }
    const bz_weight_info *w = bz_weight_of(p->weights, product->w[0]);
    g->fusion = GPU_FUSE_GEGLU_KEPT;
    g->count = 1;
    return gpu_is_low_rank(p, first + 1) && gpu_kernels_tile8(w->type) && w->ne[0] % 4 == 0 &&
           bz_plan_tensor(p, s->out[0])->cols == w->ne[0];
}

/* ---- attention ---------------------------------------------------------------------------- */

static bool has_few_rows(const gpu_lower_input *in)
{
    return in->plan->rows <= GPU_MAX_VECTOR_ROWS;
}

static bool is_norm_rope(const bz_plan *p, size_t first)
{
    const bz_step *s = &p->steps[first], *rope = follows(p, first + 1, BZ_OP_ROPE, 0);
    return s->op == BZ_OP_RMS_NORM && rope && rope->width == s->width;
}

/* Queries after keys and values, rotated by the same angles? */
static bool has_queries(const bz_plan *p, size_t first)
{
    const bz_step *k = &p->steps[first], *q = k + 4, *rope = follows(p, first + 5, BZ_OP_ROPE, 0);
    return rope && q->op == BZ_OP_RMS_NORM && q->w[0].id && q->width == k->width &&
           q->eps == k->eps && rope->width == k->width && rope->in[1].id == k[1].in[1].id;
}

static bool match_kv(const gpu_lower_input *in, size_t first, gpu_group *g)
{
    const bz_plan *p = in->plan;
    if (first + 3 >= p->n_steps || !is_norm_rope(p, first)) {
        return false;
    }
    const bz_step *k = &p->steps[first], *rope = k + 1, *v = k + 2, *write = k + 3;
    g->fusion = GPU_FUSE_KV;
    g->count = !has_few_rows(in) && has_queries(p, first) ? 6 : 4;
    return v->op == BZ_OP_RMS_NORM && !v->w[0].id && v->width == k->width && v->eps == k->eps &&
           k->w[0].id && write->op == BZ_OP_KV_WRITE && write->in[0].id == rope->out[0].id &&
           write->in[1].id == v->out[0].id && only_read_by(p, rope->out[0], first + 3) &&
           only_read_by(p, v->out[0], first + 3) &&
           p->caches[write->cache.id - 1].head_dim == k->width && k->width % 2 == 0 &&
           k->width <= 1024;
}

static bool match_attend(const gpu_lower_input *in, size_t first, gpu_group *g)
{
    const bz_plan *p = in->plan;
    const bz_step *attend = is_norm_rope(p, first) ? follows(p, first + 2, BZ_OP_ATTEND, 0) : NULL;
    g->fusion = GPU_FUSE_ATTEND;
    g->count = 3;
    return attend && has_few_rows(in) && !attend->bidirectional &&
           attend->width == p->steps[first].width && attend->width % 8 == 0 &&
           p->steps[first].w[0].id;
}

static bool match_norm_rope(const gpu_lower_input *in, size_t first, gpu_group *g)
{
    g->fusion = GPU_FUSE_NORM_ROPE;
    g->count = 2;
    return is_norm_rope(in->plan, first);
}

/* ---- norms of many rows ------------------------------------------------------------------- */

/* A norm of v for products at step `at`, with a mul_vector after it if it has no weight: its last
 * step, or NULL. */
static const bz_step *norm_for_products(const bz_plan *p, size_t at, bz_tensor v, float eps)
{
    const bz_step *s = &p->steps[at];
    if (s->op != BZ_OP_RMS_NORM || s->in[0].id != v.id || s->width != bz_plan_tensor(p, v)->cols ||
        s->eps != eps) {
        return NULL;
    }
    const bz_step *last = s->w[0].id ? s : follows(p, at + 1, BZ_OP_MUL_VECTOR, 0);
    return last && last->w[0].id && is_for_products(p, last->out[0]) ? last : NULL;
}

/* Do all products that read t take int8 rows of it, except for adapters? Products are its only
 * readers. *adapters: they are among them, but not alone. */
static bool is_for_int8(const gpu_lower_input *in, bz_tensor t, bool *adapters)
{
    const bz_plan *p = in->plan;
    uint32_t others = 0;
    *adapters = false;
    const bz_tensor_info *info = bz_plan_tensor(p, t);
    bool only = in->packed && info->stride == info->cols &&
                bz_plan_rows_of(p, t) > GPU_MAX_VECTOR_ROWS && info->last > info->first;
    for (int32_t i = info->first + 1; i <= info->last && only; i++) {
        if (p->steps[i].in[0].id != t.id) {
            continue;
        }
        const bz_weight_info *w = bz_weight_of(p->weights, p->steps[i].w[0]);
        if (p->steps[i].op == BZ_OP_LINEAR && gpu_is_low_rank(p, (size_t)i)) {
            *adapters = true;
        } else {
            only = gpu_kernels_tile8(w->type) && w->ne[0] == info->cols;
            others++;
        }
    }
    return only && others;
}

/* Does step `at` normalize v, and the next one add the result to another tensor? */
static bool is_norm_add(const bz_plan *p, size_t at, bz_tensor v, float eps)
{
    return is_row_norm(p, at) && p->steps[at].in[0].id == v.id && p->steps[at].eps == eps &&
           follows(p, at + 1, BZ_OP_ADD, 1) && p->steps[at + 1].scale == 1.0f;
}

static bool reads_tensor(const bz_plan *p, const bz_step *s, bz_tensor t)
{
    bool reads = false;
    for (int k = 0; k < 3; k++) {
        reads = reads || bz_plan_tensor(p, s->in[k])->root == t.id;
    }
    return reads;
}

static bool match_norms(const gpu_lower_input *in, size_t first, gpu_group *g)
{
    const bz_plan *p = in->plan;
    const float eps = p->steps[first].eps;
    bz_tensor v = p->steps[first].in[0];
    size_t at = first;
    if ((has_few_rows(in) && !gpu_joins_norms(in->limits)) ||
        p->steps[first].op != BZ_OP_RMS_NORM ||
        p->steps[first].width != bz_plan_tensor(p, v)->cols || p->steps[first].width > MAX_ROW) {
        return false;
    }
    while (g->norms.adds < 2 && !g->norms.has_scale && is_norm_add(p, at, v, eps) &&
           (at == first || only_read_by(p, v, at))) {
        g->norms.adds++;
        at += 2;
        g->norms.has_scale = follows(p, at, BZ_OP_SCALE, 0) != NULL;
        at += g->norms.has_scale;
        v = p->steps[at - 1].out[0];
    }
    const bz_tensor_info *info = bz_plan_tensor(p, v);
    bool multiplies = false; /* the kernel has one factor for one mul_vector */
    for (size_t i = at; i < p->n_steps && (int32_t)i <= info->last; i++) {
        const bz_step *last = norm_for_products(p, i, v, eps);
        const bool fits = last && g->norms.n < GPU_MAX_NORMS &&
                          g->norms.adds + g->norms.has_scale + g->norms.n < MAX_NORM_WEIGHTS;
        if (fits && !(multiplies && last->op == BZ_OP_MUL_VECTOR)) {
            multiplies = multiplies || last->op == BZ_OP_MUL_VECTOR;
            bool *f32 = &g->norms.f32[g->norms.n];
            g->norms.int8[g->norms.n] = is_for_int8(in, last->out[0], f32);
            g->norms.norm[g->norms.n++] = i;
        } else {
            g->norms.keeps_sum = g->norms.keeps_sum || reads_tensor(p, &p->steps[i], v);
        }
    }
    g->norms.keeps_sum = g->norms.keeps_sum || info->last == (int32_t)p->n_steps;
    if (g->norms.adds == 0) { /* the norm at `first`, and others of the same rows */
        at += gpu_norm_steps(p, first);
        if (g->norms.n < 1 || g->norms.norm[0] != first) {
            return false;
        }
    }
    g->fusion = GPU_FUSE_NORMS;
    g->count = (uint32_t)(at - first);
    return g->norms.adds + g->norms.n > 1 || g->norms.int8[0];
}

/* ---- a norm and what follows it ------------------------------------------------------------ */

static bool is_whole_norm(const bz_plan *p, size_t first)
{
    const bz_step *s = &p->steps[first];
    return s->op == BZ_OP_RMS_NORM && s->width == bz_plan_tensor(p, s->in[0])->cols;
}

static bool match_norm_mul(const gpu_lower_input *in, size_t first, gpu_group *g)
{
    g->fusion = GPU_FUSE_NORM_MUL;
    g->count = 2;
    return is_whole_norm(in->plan, first) && !in->plan->steps[first].w[0].id &&
           follows(in->plan, first + 1, BZ_OP_MUL_VECTOR, 0);
}

static bool match_norm_add(const gpu_lower_input *in, size_t first, gpu_group *g)
{
    const bz_step *add = follows(in->plan, first + 1, BZ_OP_ADD, 1);
    g->fusion = GPU_FUSE_NORM_ADD;
    g->count = 2;
    return add && add->scale == 1.0f && is_whole_norm(in->plan, first);
}

static bool match_norm_add_scale(const gpu_lower_input *in, size_t first, gpu_group *g)
{
    const bool adds = match_norm_add(in, first, g);
    g->fusion = GPU_FUSE_NORM_ADD_SCALE;
    g->count = 3;
    return adds && follows(in->plan, first + 2, BZ_OP_SCALE, 0);
}

/* ---- the rules ------------------------------------------------------------------------------ */

static const gpu_fusion_rule rules[] = {
    {"products",
     "[rms_norm add [scale]] [rms_norm] linear ... [add_low_rank ...] [geglu | softcap], int8, up "
     "to 8 rows",
     match_products},
    {"low-ranks", "add_low_rank ..., of one input", match_low_ranks},
    {"geglu-product", "geglu, linear | expert_linear, int8, more than 8 rows", match_geglu_product},
    {"geglu-kept", "geglu before linear of adapters and linear, int8, more than 8 rows",
     match_geglu_kept},
    {"kv", "rms_norm rope rms_norm kv_write [rms_norm rope of queries, more than 8 rows]",
     match_kv},
    {"attend", "rms_norm rope attend, up to 8 rows", match_attend},
    {"norm-rope", "rms_norm rope", match_norm_rope},
    {"norms",
     "[rms_norm add [rms_norm add] [scale]], up to 3 norms of it anywhere later, more than 8 rows",
     match_norms},
    {"norm-mul", "rms_norm without weight, mul_vector", match_norm_mul},
    {"norm-add-scale", "rms_norm add scale", match_norm_add_scale},
    {"norm-add", "rms_norm add", match_norm_add},
};

gpu_fusion_rules gpu_text_rules(void)
{
    return (gpu_fusion_rules){rules, sizeof rules / sizeof *rules};
}

static gpu_group group_at(const gpu_lower_input *in, size_t first)
{
    const gpu_fusion_rules all = in->plan->tower ? gpu_tower_rules() : gpu_text_rules();
    for (size_t i = 0; i < all.n; i++) {
        gpu_group g = {0};
        if ((in->fuse || all.rule[i].match == match_products) && all.rule[i].match(in, first, &g)) {
            const bool several =
                g.count > 1 || g.norms.n || g.products.adds[0] || g.fusion == GPU_FUSE_GEGLU_KEPT;
            g.rule = several ? all.rule[i].name : NULL;
            g.first = first;
            return g;
        }
    }
    return (gpu_group){.fusion = GPU_FUSE_NONE, .first = first, .count = 1};
}

/* ---- partial sums ---------------------------------------------------------------------------- */

/* Can the group's kernel add up partial sums of the product t? */
static bool adds_partial_sums(const bz_plan *p, const gpu_group *g, bz_tensor t)
{
    const bz_step *s = &p->steps[g->first];
    switch (g->fusion) {
    case GPU_FUSE_NONE:
        return (s->op == BZ_OP_RMS_NORM && s->width <= MAX_ROW) ||
               (s->op == BZ_OP_GEGLU && s->in[1].id) || s->op == BZ_OP_ROUTE ||
               s->op == BZ_OP_ADD_LOW_RANK;
    case GPU_FUSE_NORM_ADD: /* as input of the norm, not as what the norm is added to */
    case GPU_FUSE_NORM_ADD_SCALE: return s->width <= MAX_ROW && s[1].in[0].id != t.id;
    case GPU_FUSE_NORM_ROPE:
    case GPU_FUSE_NORM_MUL: return s->width <= MAX_ROW;
    case GPU_FUSE_NORMS:
        return (g->norms.adds < 1 || s[1].in[0].id != t.id) &&
               (g->norms.adds < 2 || s[3].in[0].id != t.id);
    case GPU_FUSE_KV:
    case GPU_FUSE_LOW_RANKS: return true;
    case GPU_FUSE_GEGLU_KEPT:
    case GPU_FUSE_GEGLU_PRODUCT: return s->in[1].id != 0; /* gate and up */
    default: return false;
    }
}

/* 1 + the only group that reads t; 0: none, or one that reads only some columns, except for what
 * adapters multiply by B. `step` wrote t. */
static uint32_t only_reader(const gpu_fused *f, const bz_plan *p, size_t step, bz_tensor t)
{
    const bz_tensor_info *info = bz_plan_tensor(p, t);
    uint32_t reader = 0;
    if (info->root != t.id || info->kept || t.id == p->output.id) {
        return 0;
    }
    for (size_t i = step + 1; i < p->n_steps && (int32_t)i <= info->last; i++) {
        for (size_t k = 0; k < sizeof p->steps[i].in / sizeof *p->steps[i].in; k++) {
            const bz_tensor in = p->steps[i].in[k];
            if (bz_plan_tensor(p, in)->root == t.id) {
                const bool whole =
                    in.id == t.id || (k == 1 && p->steps[i].op == BZ_OP_ADD_LOW_RANK);
                if (!whole || (reader && reader != 1 + f->group_of[i])) {
                    return 0;
                }
                reader = 1 + f->group_of[i];
            }
        }
    }
    return reader;
}

/* Can the next group combine the partial results of attention, the result of step `at`, and store
 * it if others read it, too? Only the next one: others write after the arena. Results from a cache
 * in Q4 are rotated. */
static bool combines_attention(const gpu_lower_input *in, const gpu_fused *f, size_t at)
{
    const bz_plan *p = in->plan;
    const uint32_t group = f->group_of[at] + 1;
    if (group >= f->n) {
        return false;
    }
    const gpu_group *g = &f->groups[group];
    const bz_step *attend = &p->steps[at], *product = &p->steps[g->first];
    const bz_tensor_info *t = bz_plan_tensor(p, attend->out[0]);
    return in->cache != BZ_CACHE_Q4 && g->fusion == GPU_FUSE_PRODUCTS &&
           g->products.first_product == 0 && product->op == BZ_OP_LINEAR &&
           product->in[0].id == attend->out[0].id && t->root == attend->out[0].id && !t->kept &&
           attend->width % 16 == 0 && attend->heads <= MAX_HEADS &&
           attend->heads * attend->width <= MAX_COMBINED;
}

static void find_sum_readers(const gpu_lower_input *in, gpu_fused *f)
{
    const bz_plan *p = in->plan;
    for (size_t i = 0; i < p->n_steps && in->fuse && !p->tower; i++) {
        const bz_tensor t = p->steps[i].out[0];
        if (p->steps[i].op == BZ_OP_ATTEND && combines_attention(in, f, i)) {
            const uint32_t group = f->group_of[i] + 1;
            gpu_group *g = &f->groups[group];
            g->products.keeps_input = read_after(p, t, g->first + g->count - 1);
            f->sum_reader[t.id] = 1 + group;
        }
        const uint32_t reader = p->steps[i].op == BZ_OP_LINEAR ? only_reader(f, p, i, t) : 0;
        if (reader && adds_partial_sums(p, &f->groups[reader - 1], t)) {
            f->sum_reader[t.id] = reader;
        }
    }
}

/* ---- a plan -----------------------------------------------------------------------------------
 */

void gpu_fused_free(gpu_fused *f)
{
    free(f->groups);
    free(f->group_of);
    free(f->sum_reader);
    *f = (gpu_fused){0};
}

bz_status gpu_fuse(const gpu_lower_input *input, gpu_fused *out, bz_error *err)
{
    const gpu_lower_input suited = gpu_suited(input), *in = &suited;
    const bz_plan *p = in->plan;
    bool *taken = calloc(p->n_steps + 1, sizeof *taken); /* by a group before their place */
    gpu_fused f = {.groups = malloc((p->n_steps + 1) * sizeof *f.groups),
                   .group_of = calloc(p->n_steps + 1, sizeof *f.group_of),
                   .sum_reader = calloc(p->n_tensors + 1, sizeof *f.sum_reader)};
    if (!f.groups || !f.group_of || !f.sum_reader || !taken) {
        gpu_fused_free(&f);
        free(taken);
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to schedule a plan.");
    }
    for (size_t i = 0; i < p->n_steps;) {
        if (taken[i]) {
            i++;
            continue;
        }
        const gpu_group *g = &f.groups[f.n];
        f.groups[f.n] = group_at(in, i);
        for (uint32_t k = 0; k < g->norms.n; k++) {
            const size_t norm = g->norms.norm[k];
            for (size_t s = norm; s < norm + gpu_norm_steps(p, norm); s++) {
                taken[s] = true;
                f.group_of[s] = f.n;
            }
        }
        for (uint32_t k = 0; k < GPU_MAX_PRODUCTS; k++) {
            const size_t add = g->products.adds[k];
            if (add) {
                taken[add] = true;
                f.group_of[add] = f.n;
            }
        }
        for (uint32_t k = 0; k < g->count; k++) {
            f.group_of[i++] = f.n;
        }
        f.n++;
    }
    free(taken);
    find_sum_readers(in, &f);
    *out = f;
    return BZ_OK;
}
