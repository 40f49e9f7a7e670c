#include "gpu/lower/fuse.h"

#include "gpu/kernels/catalog.h"

/* Is `t` read by step `reader`, as one of its inputs, and by none after it? */
static bool only_read_by(const bz_plan *p, bz_tensor t, size_t reader)
{
    const bz_tensor_info *i = bz_plan_tensor(p, t);
    int times = 0;
    for (int k = 0; k < 3; k++) {
        times += bz_plan_tensor(p, p->steps[reader].in[k])->root == t.id;
    }
    return i->root == t.id && i->last == (int32_t)reader && times == 1;
}

static bool read_behind(const bz_plan *p, bz_tensor t, size_t step)
{
    return bz_plan_tensor(p, t)->last > (int32_t)step;
}

/* Step `at`, where there is one of that kind that alone reads what step at - 1 wrote. */
static const bz_step *follows(const bz_plan *p, size_t at, bz_op op, int input)
{
    const bz_step *s = at < p->n_steps ? &p->steps[at] : NULL;
    return s && s->op == op && s->in[input].id == s[-1].out[0].id &&
                   only_read_by(p, s[-1].out[0], at)
               ? s
               : NULL;
}

/* A norm of whole rows that a workgroup can hold. */
static bool is_row_norm(const bz_plan *p, size_t at)
{
    const bz_step *s = at < p->n_steps ? &p->steps[at] : NULL;
    return s && s->op == BZ_OP_RMS_NORM && s->w[0].id &&
           s->width == bz_plan_tensor(p, s->in[0])->cols && s->width <= 4096;
}

/* Rows that can be read four values at a time. */
static bool is_even(const bz_plan *p, bz_tensor t)
{
    const bz_tensor_info *i = bz_plan_tensor(p, t);
    return (i->stride | i->column) % 4 == 0;
}

/* ---- products ------------------------------------------------------------------------- */

/* Are all matrices of a tensor of experts whole in their pieces? */
static bool has_whole_experts(const gpu_fuse_rules *r, bz_weight w)
{
    const uint64_t outputs = bz_weight_of(r->weights->table, w)->ne[1];
    bool whole = true;
    for (uint32_t i = r->weights->first_piece[w.id - 1]; i < r->weights->first_piece[w.id]; i++) {
        whole = whole && r->weights->pieces[i].rows % outputs == 0;
    }
    return whole;
}

static bool packs(const gpu_fuse_rules *r, const bz_plan *p, size_t at)
{
    const bz_step *s = at < p->n_steps ? &p->steps[at] : NULL;
    if (!s || !r->packed || (s->op != BZ_OP_LINEAR && s->op != BZ_OP_EXPERT_LINEAR) ||
        bz_plan_rows_of(p, s->out[0]) > 8) {
        return false;
    }
    const bz_weight_info *w = bz_weight_of(p->weights, s->w[0]);
    return gpu_kernels_packed(w->type) && w->ne[1] % 4 == 0 && is_even(p, s->in[0]) &&
           is_even(p, s->out[0]) && (s->op == BZ_OP_LINEAR || has_whole_experts(r, s->w[0]));
}

gpu_binding gpu_fuse_span(const gpu_fuse_rules *r, const bz_step *products, uint32_t n)
{
    gpu_binding span = {0};
    for (uint32_t i = 0; i < n; i++) {
        uint32_t piece = r->weights->first_piece[products[i].w[0].id - 1];
        gpu_binding at = r->weights->pieces[piece].at;
        if (r->weights->first_piece[products[i].w[0].id] != piece + 1 ||
            (i && at.buffer != span.buffer)) {
            return (gpu_binding){0};
        }
        if (i == 0) {
            span = at;
        }
        uint64_t end = at.offset + at.size > span.offset + span.size ? at.offset + at.size
                                                                     : span.offset + span.size;
        span.offset = at.offset < span.offset ? at.offset : span.offset;
        span.size = end - span.offset;
    }
    return span.size <= r->max_binding ? span : (gpu_binding){0};
}

/* Does step `at` multiply the same input as the product `like`, of the same type? */
static bool joins(const gpu_fuse_rules *r, const bz_plan *p, size_t at, const bz_step *like,
                  uint32_t n)
{
    const bz_step *s = &p->steps[at];
    return packs(r, p, at) && s->op == like->op && s->in[0].id == like->in[0].id &&
           s->in[1].id == like->in[1].id &&
           bz_weight_of(p->weights, s->w[0])->type == bz_weight_of(p->weights, like->w[0])->type &&
           gpu_fuse_span(r, like, n + 1).size > 0;
}

/* geglu or softcap at step `at`, behind n products. */
static bool ends_with(const bz_plan *p, size_t at, uint32_t n)
{
    const bz_step *s = at < p->n_steps ? &p->steps[at] : NULL;
    if (!s || n > 2) {
        return false;
    }
    if (s->op == BZ_OP_GEGLU && s->in[1].id && n == 2) {
        return s->in[0].id == s[-2].out[0].id && s->in[1].id == s[-1].out[0].id &&
               only_read_by(p, s->in[0], at) && only_read_by(p, s->in[1], at);
    }
    const bool experts = s[-1].op == BZ_OP_EXPERT_LINEAR;
    if (s->op == BZ_OP_GEGLU && !s->in[1].id) { /* gates and ups of one matrix */
        return n == 1 && experts && follows(p, at, BZ_OP_GEGLU, 0) && s->width % 4 == 0 &&
               2 * s->width == bz_weight_of(p->weights, s[-1].w[0])->ne[1];
    }
    if (experts) {
        return false;
    }
    if (s->op == BZ_OP_GEGLU && n == 1) {
        return follows(p, at, BZ_OP_GEGLU, 0) && s->in[1].id != s->in[0].id && is_even(p, s->in[1]);
    }
    return n == 1 && follows(p, at, BZ_OP_SOFTCAP, 0);
}

static gpu_group products(const gpu_fuse_rules *r, const bz_plan *p, size_t first)
{
    gpu_group g = {.fusion = GPU_FUSE_PRODUCTS};
    const gpu_group none = {.fusion = GPU_FUSE_NONE, .count = 1};
    size_t at = first;
    bz_tensor input = BZ_NO_TENSOR, sum = BZ_NO_TENSOR;
    if (r->fuse && is_row_norm(p, at) && follows(p, at + 1, BZ_OP_ADD, 1) &&
        p->steps[at + 1].scale == 1.0f) {
        g.products.add = 1;
        at += 2;
        if (follows(p, at, BZ_OP_SCALE, 0)) {
            g.products.scale = (uint8_t)(at - first);
            at++;
        }
        input = sum = p->steps[at - 1].out[0];
        while (at < p->n_steps && p->steps[at].op == BZ_OP_CUT) {
            at++;
        }
    }
    if (r->fuse && is_row_norm(p, at) && (!sum.id || p->steps[at].in[0].id == sum.id)) {
        g.products.norms = true;
        input = p->steps[at++].out[0];
    }
    if (!packs(r, p, at) || (input.id && p->steps[at].in[0].id != input.id)) {
        return none;
    }
    const bz_step *product = &p->steps[at];
    const bool experts = product->op == BZ_OP_EXPERT_LINEAR;
    g.products.first = (uint8_t)(at - first);
    do {
        g.products.n++;
        at++;
    } while (r->fuse && g.products.n < (experts ? 2 : 3) && joins(r, p, at, product, g.products.n));
    if (experts && g.products.n == 2 &&
        !ends_with(p, at, 2)) { /* two results have no place of their own there */
        g.products.n = 1;
        at--;
    }
    g.products.keeps_sum = sum.id && read_behind(p, sum, at - 1);
    g.products.keeps_norm = g.products.norms && read_behind(p, input, at - 1);
    if (experts &&
        (g.products.add || g.products.keeps_norm)) { /* nobody is sure to be there to write them */
        return none;
    }
    if (r->fuse && ends_with(p, at, g.products.n) && !g.products.keeps_norm) {
        g.products.then = (uint8_t)(at - first);
        at++;
    }
    g.count = (uint32_t)(at - first);
    return g;
}

/* geglu whose rows only a product of many rows reads, in 8 bits: they are rounded as they are made.
 */
static bool is_gated(const gpu_fuse_rules *r, const bz_plan *p, size_t first)
{
    const bz_step *s = &p->steps[first], *product = follows(p, first + 1, BZ_OP_LINEAR, 0);
    product = product ? product : follows(p, first + 1, BZ_OP_EXPERT_LINEAR, 0);
    if (s->op != BZ_OP_GEGLU || !product || !r->packed ||
        bz_plan_rows_of(p, product->out[0]) <= 8) {
        return false;
    }
    const bz_weight_info *w = bz_weight_of(p->weights, product->w[0]);
    return gpu_kernels_tile8(w->type) && (s->in[1].id || s->width == w->ne[0]);
}

/* ---- attention ---------------------------------------------------------------------------- */

static bool is_kv(const bz_plan *p, size_t first)
{
    if (first + 3 >= p->n_steps) {
        return false;
    }
    const bz_step *k = &p->steps[first], *rope = k + 1, *v = k + 2, *write = k + 3;
    return v->op == BZ_OP_RMS_NORM && !v->w[0].id && v->width == k->width && v->eps == k->eps &&
           k->w[0].id && write->op == BZ_OP_KV_WRITE && write->in[0].id == rope->out[0].id &&
           write->in[1].id == v->out[0].id && only_read_by(p, rope->out[0], first + 3) &&
           only_read_by(p, v->out[0], first + 3) &&
           p->caches[write->cache.id - 1].head_dim == k->width && k->width % 2 == 0 &&
           k->width <= 1024;
}

/* Queries behind keys and values, turned by the same angles? */
static bool has_queries(const bz_plan *p, size_t first)
{
    const bz_step *k = &p->steps[first], *q = k + 4, *rope = follows(p, first + 5, BZ_OP_ROPE, 0);
    return rope && q->op == BZ_OP_RMS_NORM && q->w[0].id && q->width == k->width &&
           q->eps == k->eps && rope->width == k->width && rope->in[1].id == k[1].in[1].id;
}

static bool is_attend(const bz_plan *p, size_t first)
{
    const bz_step *attend = follows(p, first + 2, BZ_OP_ATTEND, 0);
    return attend && !attend->bidirectional && attend->width == p->steps[first].width &&
           attend->width % 8 == 0 && p->steps[first].w[0].id;
}

/* ---- norms of many rows ------------------------------------------------------------------------
 */

enum {
    MOST_HELD = 3840, /* values that a kernel keeps, beside 256 more, in 16 KiB */
    MOST_NORMS = 3,
    MOST_VECTORS = 4 /* weights that norms.wgsl binds */
};

/* Do products alone read it? */
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

/* A norm of v for products at step `at`, perhaps with a mul_vector behind it: the last step of it,
 * or NULL. */
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

/* ... that take 8 bits? Of many rows, each as it is. */
static bool is_for_eights(const gpu_fuse_rules *r, const bz_plan *p, bz_tensor t)
{
    const bz_tensor_info *info = bz_plan_tensor(p, t);
    bool only = r->packed && info->stride == info->cols && bz_plan_rows_of(p, t) > 8 &&
                info->last > info->first;
    for (int32_t i = info->first + 1; i <= info->last && only; i++) {
        const bz_weight_info *w =
            p->steps[i].in[0].id == t.id ? bz_weight_of(p->weights, p->steps[i].w[0]) : NULL;
        only = !w || (gpu_kernels_tile8(w->type) && w->ne[0] == info->cols);
    }
    return only;
}

/* rms_norm of v at step `at`, added to something else? */
static bool is_norm_add(const bz_plan *p, size_t at, bz_tensor v, float eps)
{
    return is_row_norm(p, at) && p->steps[at].in[0].id == v.id && p->steps[at].eps == eps &&
           follows(p, at + 1, BZ_OP_ADD, 1) && p->steps[at + 1].scale == 1.0f;
}

static gpu_group norms(const gpu_fuse_rules *r, const bz_plan *p, size_t first)
{
    gpu_group g = {.fusion = GPU_FUSE_NORMS};
    const gpu_group none = {.fusion = GPU_FUSE_NONE, .count = 1};
    const float eps = p->steps[first].eps;
    bz_tensor v = p->steps[first].in[0];
    size_t at = first;
    if (p->steps[first].width != bz_plan_tensor(p, v)->cols || p->steps[first].width > MOST_HELD) {
        return none;
    }
    while (g.norms.adds < 2 && !g.norms.scales && is_norm_add(p, at, v, eps) &&
           (at == first || only_read_by(p, v, at))) {
        g.norms.adds++;
        at += 2;
        g.norms.scales = follows(p, at, BZ_OP_SCALE, 0) != NULL;
        at += g.norms.scales;
        v = p->steps[at - 1].out[0];
    }
    const bz_tensor_info *info = bz_plan_tensor(p, v);
    bool multiplies = false;
    for (size_t i = at; i < p->n_steps && (int32_t)i <= info->last; i++) {
        const bz_step *last = norm_for_products(p, i, v, eps);
        const bool fits = last && g.norms.n < MOST_NORMS &&
                          g.norms.adds + g.norms.scales + g.norms.n < MOST_VECTORS;
        if (fits && !(multiplies && last->op == BZ_OP_MUL_VECTOR)) {
            multiplies = multiplies || last->op == BZ_OP_MUL_VECTOR;
            g.norms.eights[g.norms.n] = is_for_eights(r, p, last->out[0]);
            g.norms.norm[g.norms.n++] = i;
            continue;
        }
        for (int k = 0; k < 3; k++) {
            g.norms.keeps = g.norms.keeps || bz_plan_tensor(p, p->steps[i].in[k])->root == v.id;
        }
    }
    g.norms.keeps = g.norms.keeps || info->last == (int32_t)p->n_steps;
    if (g.norms.adds == 0) { /* the norm at hand, and others of the same rows */
        at += gpu_fuse_norm_steps(p, first);
        if (g.norms.n < 1 || g.norms.norm[0] != first) {
            return none;
        }
    }
    g.count = (uint32_t)(at - first);
    return g.norms.adds + g.norms.n > 1 || g.norms.eights[0] ? g : none;
}

/* ---- all rules ---------------------------------------------------------------------------- */

gpu_group gpu_fuse(const gpu_fuse_rules *r, const bz_plan *p, size_t first)
{
    const bz_step *s = &p->steps[first];
    gpu_group group = products(r, p, first);
    if (group.fusion != GPU_FUSE_NONE) {
        return group;
    }
    if (r->fuse && is_gated(r, p, first)) {
        return (gpu_group){.fusion = GPU_FUSE_GATED, .count = 2};
    }
    if (!r->fuse || s->op != BZ_OP_RMS_NORM) {
        return (gpu_group){.fusion = GPU_FUSE_NONE, .count = 1};
    }
    const bz_step *rope = follows(p, first + 1, BZ_OP_ROPE, 0);
    if (rope && rope->width == s->width) {
        if (is_kv(p, first)) {
            return (gpu_group){.fusion = GPU_FUSE_KV,
                               .count = !r->few && has_queries(p, first) ? 6 : 4};
        }
        if (r->few && is_attend(p, first)) {
            return (gpu_group){.fusion = GPU_FUSE_ATTEND, .count = 3};
        }
        return (gpu_group){.fusion = GPU_FUSE_NORM_ROPE, .count = 2};
    }
    if (!r->few && (group = norms(r, p, first)).fusion == GPU_FUSE_NORMS) {
        return group;
    }
    const bool whole = s->width == bz_plan_tensor(p, s->in[0])->cols;
    if (whole && !s->w[0].id && follows(p, first + 1, BZ_OP_MUL_VECTOR, 0)) {
        return (gpu_group){.fusion = GPU_FUSE_NORM_MUL, .count = 2};
    }
    const bz_step *add = follows(p, first + 1, BZ_OP_ADD, 1);
    if (add && add->scale == 1.0f && whole) {
        return follows(p, first + 2, BZ_OP_SCALE, 0)
                   ? (gpu_group){.fusion = GPU_FUSE_NORM_ADD_SCALE, .count = 3}
                   : (gpu_group){.fusion = GPU_FUSE_NORM_ADD, .count = 2};
    }
    return (gpu_group){.fusion = GPU_FUSE_NONE, .count = 1};
}

/* ---- sums of splits ------------------------------------------------------------------------- */

bool gpu_fuse_adds(const bz_plan *p, const gpu_group *g, bz_tensor t)
{
    const bz_step *s = &p->steps[g->first];
    switch (g->fusion) {
    case GPU_FUSE_NONE:
        return (s->op == BZ_OP_RMS_NORM && s->width <= MOST_HELD) ||
               (s->op == BZ_OP_GEGLU && s->in[1].id) || s->op == BZ_OP_ROUTE;
    case GPU_FUSE_NORM_ADD: /* what is normed, but not what the norm is added to */
    case GPU_FUSE_NORM_ADD_SCALE: return s->width <= MOST_HELD && s[1].in[0].id != t.id;
    case GPU_FUSE_NORM_ROPE:
    case GPU_FUSE_NORM_MUL: return s->width <= MOST_HELD;
    case GPU_FUSE_NORMS: /* neither what norms are added to */
        return (g->norms.adds < 1 || s[1].in[0].id != t.id) &&
               (g->norms.adds < 2 || s[3].in[0].id != t.id);
    case GPU_FUSE_KV: return true;
    case GPU_FUSE_GATED: return s->in[1].id != 0; /* gate and up */
    default: return false;
    }
}
