/* Checks every recorded step against its tensors, weights and caches, so that kernels need no
 * checks of their own: what a file may choose (sizes, types, which tensors exist) ends here with a
 * sentence, in every build and for every back end. */
#include "plan/recording.h"

#include <stdio.h>

/* Why a step cannot be computed; NULL: it can. */
typedef const char *problem;

typedef struct step_view {
    const bz_plan *p;
    const bz_step *s;
    size_t at;                   /* index of the step */
    uint64_t x, y, z, out, out1; /* columns; 0: no tensor */
    const bz_weight_info *w;     /* NULL: none */
} step_view;

static const bz_tensor_info *info_of(const bz_plan *p, bz_tensor t)
{
    return t.id && t.id < p->n_tensors ? &p->tensors[t.id] : NULL;
}

static uint64_t cols_of(const bz_plan *p, bz_tensor t)
{
    const bz_tensor_info *i = info_of(p, t);
    return i ? i->cols : 0;
}

static bool same_rows(const step_view *v, bz_tensor a, bz_tensor b)
{
    const bz_tensor_info *x = info_of(v->p, a), *y = info_of(v->p, b);
    return x && y && x->whole_pass == y->whole_pass;
}

static bool has_rows(const step_view *v, bz_tensor t, bool whole_pass)
{
    const bz_tensor_info *i = info_of(v->p, t);
    return i && i->whole_pass == whole_pass;
}

/* ---- weights -------------------------------------------------------------------------- */

static bool is_vector(const bz_weight_info *w, uint64_t n)
{
    return w && w->type == BZ_F32 && w->ne[0] == n && w->ne[1] == 1 && w->ne[2] == 1;
}

static bool is_matrix(const bz_weight_info *w, uint64_t in, uint64_t out)
{
    return w && w->ne[0] == in && w->ne[1] == out && w->ne[2] == 1;
}

/* Whether the weight's bytes hold its shape: whole blocks in every row, and no overflow. ids: it is
 * a table of integers. */
static bool bytes_fit(const bz_weight_info *w, bool ids)
{
    uint64_t row, bytes;
    const bz_type_info *type = bz_type_of((uint32_t)w->type);
    if (!type || !(ids ? bz_type_is_ids(w->type) : type->runs) || !w->ne[0] || !w->ne[1] ||
        !w->ne[2] || w->ne[0] % type->block_values) {
        return false;
    }
    return !__builtin_mul_overflow(w->ne[0] / type->block_values, (uint64_t)type->block_bytes,
                                   &row) &&
           !__builtin_mul_overflow(row, w->ne[1], &bytes) &&
           !__builtin_mul_overflow(bytes, w->ne[2], &bytes) && bytes <= w->size;
}

/* ---- kinds of steps --------------------------------------------------------------------- */

static problem elementwise(const step_view *v, uint64_t inputs)
{
    const bool fits = v->out == v->x && (inputs < 2 || v->y == v->x) &&
                      same_rows(v, v->s->in[0], v->s->out[0]) &&
                      (inputs < 2 || same_rows(v, v->s->in[1], v->s->out[0]));
    return fits ? NULL : "its inputs and its output have different sizes";
}

static problem norm(const step_view *v, bool weight_required)
{
    const uint64_t width = v->s->width;
    if (!width || v->x % width) {
        return "its rows do not divide into groups";
    }
    if (v->w ? !is_vector(v->w, width) : weight_required) {
        return "its weight has another size than a group";
    }
    return elementwise(v, 1);
}

static problem product(const step_view *v)
{
    return is_matrix(v->w, v->x, v->out) && same_rows(v, v->s->in[0], v->s->out[0])
               ? NULL
               : "its matrix has another shape than its input and output";
}

static problem rope_table(const step_view *v)
{
    const bz_step *s = v->s;
    if (!s->width || s->width % 2 || s->axes < 1 || s->axes > 2 ||
        s->rotated_pairs > s->width / 2) {
        return "its angles do not cover pairs of values";
    }
    if (v->w && !is_vector(v->w, s->width / 2)) {
        return "it needs one frequency factor per pair";
    }
    return v->out == (uint64_t)s->axes * s->width ? NULL : "its output has another size";
}

static problem rope(const step_view *v)
{
    const uint64_t width = v->s->width;
    if (!width || width % 2 || v->x % width) {
        return "its rows do not divide into heads";
    }
    const bool two_axes = v->y == 2 * width && v->x / width % 2 == 0;
    if (v->y != width && !two_axes) {
        return "its table of angles is for another head size";
    }
    return same_rows(v, v->s->in[1], v->s->out[0]) ? elementwise(v, 1)
                                                   : "its table of angles has other rows";
}

static const bz_cache_info *cache_of(const step_view *v)
{
    const uint32_t id = v->s->cache.id;
    return id && id <= v->p->n_caches ? &v->p->caches[id - 1] : NULL;
}

static problem kv_write(const step_view *v)
{
    const bz_cache_info *c = cache_of(v);
    const uint64_t cols = c ? (uint64_t)c->kv_heads * c->head_dim : 0;
    return cols && v->x == cols && v->y == cols && has_rows(v, v->s->in[0], true) &&
                   has_rows(v, v->s->in[1], true)
               ? NULL
               : "its keys and values have another size than the layer's cache";
}

static problem attend(const step_view *v)
{
    const bz_step *s = v->s;
    const bz_cache_info *c = cache_of(v);
    if (!c || !c->kv_heads || s->width != c->head_dim || s->heads % c->kv_heads) {
        return "its heads do not match the cache that it reads";
    }
    /* Rings are longer than the window; a drafter reads one position more (assistant.h). */
    if (c->window && (!s->window || s->window > c->window + 1)) {
        return "it reads more positions than the cache keeps";
    }
    return s->heads && v->x == (uint64_t)s->heads * s->width ? elementwise(v, 1)
                                                             : "its heads do not fill its input";
}

static problem attend_all(const step_view *v)
{
    const uint64_t cols = (uint64_t)v->s->heads * v->s->width;
    return cols && v->x == cols && v->y == cols && v->z == cols ? elementwise(v, 2)
                                                                : "its heads do not fill its input";
}

static problem route(const step_view *v)
{
    const uint32_t used = v->s->experts_used;
    return used && used <= v->x && v->out == used && v->out1 == used &&
                   has_rows(v, v->s->in[0], true)
               ? NULL
               : "it selects more experts than there are";
}

/* Experts that the ids in tensor t choose from; 0: no step routes to t. */
static uint64_t experts_of(const step_view *v, bz_tensor t)
{
    for (size_t i = v->at; i > 0; i--) {
        const bz_step *s = &v->p->steps[i - 1];
        if (s->op == BZ_OP_ROUTE && s->out[0].id == t.id) {
            return cols_of(v->p, s->in[0]);
        }
    }
    return 0;
}

/* What the numbers in tensor t, which a top or list_rows writes, are less than; 0: neither does. */
static uint64_t numbers_of(const step_view *v, bz_tensor t, bz_op op)
{
    for (size_t i = v->at; i > 0; i--) {
        const bz_step *s = &v->p->steps[i - 1];
        if (s->op == op && s->out[0].id == t.id) {
            const bz_weight_info *w = s->w[0].id ? bz_weight_of(v->p->weights, s->w[0]) : NULL;
            return w ? w->ne[0] * w->ne[1] : cols_of(v->p, s->in[0]);
        }
    }
    return 0;
}

/* The number of tokens that a best chooses from. */
static uint64_t tokens_of(const step_view *v, const bz_step *s)
{
    return s->in[1].id ? numbers_of(v, s->in[1], BZ_OP_LIST_ROWS) : cols_of(v->p, s->in[0]);
}

/* Rows of the logits whose ids are in tensor t; 0: no step writes ids there, or they differ. */
static uint64_t rows_of_best(const step_view *v, bz_tensor t)
{
    uint64_t rows = 0;
    for (size_t i = 0; i < v->at; i++) {
        const bz_step *s = &v->p->steps[i];
        if (s->out[0].id == t.id) {
            const uint64_t cols = s->op == BZ_OP_BEST ? tokens_of(v, s) : 0;
            if (!cols || (rows && rows != cols)) {
                return 0;
            }
            rows = cols;
        }
    }
    return rows;
}

static problem expert_linear(const step_view *v)
{
    const uint64_t used = v->s->experts_used;
    if (!used || v->y != used || !v->w || v->w->ne[2] != experts_of(v, v->s->in[1])) {
        return "its matrices are not one per expert";
    }
    return (v->x == v->w->ne[0] || (v->x % used == 0 && v->x / used == v->w->ne[0])) &&
                   v->out % used == 0 && v->out / used == v->w->ne[1]
               ? NULL
               : "its matrices have another shape than its input and output";
}

static problem expert_sum(const step_view *v)
{
    const uint64_t used = v->s->experts_used, experts = experts_of(v, v->s->in[1]);
    if (!used || !experts || v->y != used || v->z != used || v->x != used * v->out) {
        return "its input is not one row per selected expert";
    }
    return !v->w || is_vector(v->w, experts) ? NULL : "its scales are not one per expert";
}

static problem add_low_rank(const step_view *v)
{
    const bz_step *s = v->s;
    const bool slots = s->in[2].id != 0;
    const uint64_t used = slots ? s->experts_used : 1,
                   experts = slots ? experts_of(v, s->in[2]) : 1;
    if (!used || (slots ? v->z != used : s->experts_used) || !experts || v->x % used ||
        v->y % used) {
        return "its inputs are not one part per selected expert";
    }
    const uint64_t panels = (v->x / used + BZ_LOW_RANK_PANEL - 1) / BZ_LOW_RANK_PANEL;
    if (!v->w || v->w->type != BZ_F32 || v->w->ne[0] != BZ_LOW_RANK_PANEL ||
        v->w->ne[1] != v->y / used || v->w->ne[2] != experts * panels) {
        return "its matrix has another shape than its inputs and output";
    }
    return same_rows(v, s->in[1], s->out[0]) ? elementwise(v, 1) : "its inputs have other rows";
}

static problem conv(const step_view *v)
{
    const bz_step *s = v->s;
    const uint64_t in = (uint64_t)s->frames * s->width * s->channels;
    if (!in || in != v->x || s->frames % 2 || s->width % 2) {
        return "its input is not frames of bins and channels";
    }
    return v->w && v->w->ne[2] == 1 && v->w->ne[0] == 9ull * s->channels &&
                   v->out == (uint64_t)(s->frames / 2) * (s->width / 2) * v->w->ne[1]
               ? NULL
               : "its kernels have another shape than its input and output";
}

static problem local_attention(const step_view *v)
{
    const bz_step *s = v->s;
    const uint64_t all = (uint64_t)s->heads * s->width, scores = (uint64_t)s->heads * s->window;
    const bool fits = s->op == BZ_OP_LOCAL_SCORES
                          ? v->x == all && v->y == all && v->z == all && v->out == scores &&
                                has_rows(v, s->in[2], false) && s->window <= v->p->out_rows
                          : v->x == scores && v->y == all && v->out == all;
    return all && scores && fits ? NULL : "its heads do not fill its input";
}

static problem soft_embed(const step_view *v)
{
    return is_matrix(v->w, v->out, v->x) && v->y == BZ_STAT_COLUMNS && v->s->first_row < v->p->rows
               ? NULL
               : "its table has another shape than the logits";
}

static problem mul_vector(const step_view *v)
{
    return v->w ? norm(v, true) : elementwise(v, 1);
}

static problem geglu(const step_view *v)
{
    if (v->s->in[1].id) {
        return elementwise(v, 2);
    }
    return v->s->width && v->out % v->s->width == 0 && v->x == 2 * v->out
               ? NULL
               : "its input is not groups of gates and ups";
}

static problem take_rows(const step_view *v)
{
    return v->x == v->out && has_rows(v, v->s->in[0], true) && has_rows(v, v->s->out[0], false) &&
                   v->s->first_row < v->p->rows
               ? NULL
               : "it takes rows that do not exist";
}

static problem position_embed(const step_view *v)
{
    return v->w && v->w->ne[0] == v->x && v->w->ne[2] == 2 ? elementwise(v, 1)
                                                           : "its table is not two planes of rows";
}

/* The logits have no more columns than f32 has whole numbers. */
static problem best(const step_view *v)
{
    if (v->x > 1u << 24) {
        return "its ids are no whole numbers of f32";
    }
    if (v->s->in[1].id && (v->y != v->x || !tokens_of(v, v->s))) {
        return "its logits are not those of a list";
    }
    return v->s->width < v->out && same_rows(v, v->s->in[0], v->s->out[0])
               ? NULL
               : "its output has no such column";
}

static problem top(const step_view *v)
{
    return v->out <= v->x && v->x <= 1u << 24 && same_rows(v, v->s->in[0], v->s->out[0])
               ? NULL
               : "it selects more than there are";
}

static problem list_rows(const step_view *v)
{
    const bz_weight_info *w = v->w;
    if (!w || w->ne[2] != 1 || numbers_of(v, v->s->in[0], BZ_OP_TOP) != w->ne[1] ||
        w->ne[0] > (1u << 24) / w->ne[1]) {
        return "its table has another shape than what selects its rows";
    }
    return v->out == v->x * w->ne[0] && same_rows(v, v->s->in[0], v->s->out[0])
               ? NULL
               : "its output has another size";
}

static problem linear_listed(const step_view *v)
{
    return v->w && is_matrix(v->w, v->x, numbers_of(v, v->s->in[1], BZ_OP_LIST_ROWS)) &&
                   v->y == v->out && same_rows(v, v->s->in[0], v->s->out[0]) &&
                   same_rows(v, v->s->in[1], v->s->out[0])
               ? NULL
               : "its matrix has another shape than its input and its list";
}

static problem embed(const step_view *v)
{
    if (!v->w || v->w->ne[0] != v->out || v->w->ne[2] != 1) {
        return "its table has another width";
    }
    return !v->s->in[0].id || (v->s->width < v->x && rows_of_best(v, v->s->in[0]) == v->w->ne[1])
               ? NULL
               : "its ids are not those of its table";
}

static problem concat(const step_view *v)
{
    return v->s->width == v->x && v->out == v->x + v->y ? NULL
                                                        : "its inputs do not fill its output";
}

static problem check_op(const step_view *v)
{
    const bz_step *s = v->s;
    static const char another_size[] = "its output has another size";
    switch (s->op) {
    case BZ_OP_EMBED: return embed(v);
    case BZ_OP_LINEAR: return product(v);
    case BZ_OP_RMS_NORM: return norm(v, false);
    case BZ_OP_ADD:
    case BZ_OP_ADD_SCALED: return elementwise(v, 2);
    case BZ_OP_SCALE: return is_vector(v->w, 1) ? elementwise(v, 1) : "its scale is not one value";
    case BZ_OP_MUL_VECTOR: return mul_vector(v);
    case BZ_OP_GEGLU: return geglu(v);
    case BZ_OP_ROPE_TABLE: return rope_table(v);
    case BZ_OP_ROPE: return rope(v);
    case BZ_OP_KV_WRITE: return kv_write(v);
    case BZ_OP_ATTEND: return attend(v);
    case BZ_OP_ROUTE: return route(v);
    case BZ_OP_EXPERT_LINEAR: return expert_linear(v);
    case BZ_OP_EXPERT_SUM: return expert_sum(v);
    case BZ_OP_ADD_LOW_RANK: return add_low_rank(v);
    case BZ_OP_TAKE_ROWS:
    case BZ_OP_MEAN_ROWS: return take_rows(v);
    case BZ_OP_CONCAT: return concat(v);
    case BZ_OP_BEST: return best(v);
    case BZ_OP_TOP: return top(v);
    case BZ_OP_LIST_ROWS: return list_rows(v);
    case BZ_OP_LINEAR_LISTED: return linear_listed(v);
    case BZ_OP_SOFTCAP:
    case BZ_OP_READ_KEPT:
    case BZ_OP_CLAMP:
    case BZ_OP_RELU:
    case BZ_OP_SILU: return elementwise(v, 1);
    case BZ_OP_LOGIT_STATS:
        return v->out == BZ_STAT_COLUMNS && s->first_row < v->p->rows ? NULL : another_size;
    case BZ_OP_SOFT_EMBED: return soft_embed(v);
    case BZ_OP_CUT: return NULL;
    case BZ_OP_INPUT: return has_rows(v, s->out[0], true) ? NULL : another_size;
    case BZ_OP_POSITION_EMBED: return position_embed(v);
    case BZ_OP_LAYER_NORM: return norm(v, true);
    case BZ_OP_ADD_VECTOR:
        return is_vector(v->w, v->x) ? elementwise(v, 1) : "its weight has another size than a row";
    case BZ_OP_GLU:
        return s->width == v->out && v->x == 2 * v->out ? NULL
                                                        : "its input is not values and gates";
    case BZ_OP_ATTEND_ALL: return attend_all(v);
    case BZ_OP_POOL:
        return v->out == v->x && s->width && has_rows(v, s->out[0], false) ? NULL : another_size;
    case BZ_OP_CONV: return conv(v);
    case BZ_OP_CONV_TIME:
        return is_matrix(v->w, s->width, v->x) && s->width ? elementwise(v, 1)
                                                           : "its kernels are not one per column";
    case BZ_OP_SINUSOIDS:
        return v->out == s->width && s->width >= 4 && s->width % 2 == 0 ? NULL : another_size;
    case BZ_OP_LOCAL_SCORES:
    case BZ_OP_LOCAL_SUM: return local_attention(v);
    }
    return "its kind is unknown";
}

/* ---- what holds for every step -------------------------------------------------------- */

/* How many inputs and outputs a kind of step needs; a rope table and an input read no tensor. */
static void needs(const bz_step *s, unsigned *inputs, unsigned *outputs)
{
    *outputs = 1;
    *inputs = 1;
    switch (s->op) {
    case BZ_OP_CUT: *outputs = 0; /* fall through */
    case BZ_OP_EMBED:
    case BZ_OP_ROPE_TABLE:
    case BZ_OP_INPUT:
    case BZ_OP_SINUSOIDS: *inputs = 0; break;
    case BZ_OP_KV_WRITE: *outputs = 0; /* fall through */
    case BZ_OP_ADD:
    case BZ_OP_ADD_SCALED:
    case BZ_OP_CONCAT:
    case BZ_OP_ROPE:
    case BZ_OP_EXPERT_LINEAR:
    case BZ_OP_LINEAR_LISTED:
    case BZ_OP_ADD_LOW_RANK:
    case BZ_OP_SOFT_EMBED:
    case BZ_OP_LOCAL_SUM: *inputs = 2; break;
    case BZ_OP_EXPERT_SUM:
    case BZ_OP_ATTEND_ALL:
    case BZ_OP_LOCAL_SCORES: *inputs = 3; break;
    case BZ_OP_ROUTE: *outputs = 2; break;
    default: break;
    }
}

/* A view lies inside the tensor that owns the memory. */
static bool inside_root(const bz_plan *p, const bz_tensor_info *t)
{
    return t->root < p->n_tensors && (uint64_t)t->column + t->cols <= p->tensors[t->root].stride &&
           t->stride == p->tensors[t->root].stride;
}

static problem check_tensors(const step_view *v)
{
    const bz_plan *p = v->p;
    const bz_step *s = v->s;
    unsigned inputs, outputs;
    needs(s, &inputs, &outputs);
    for (unsigned i = 0; i < 3; i++) {
        const bz_tensor_info *t = info_of(p, s->in[i]);
        if (!t) {
            if (i < inputs || s->in[i].id) {
                return "an input does not exist";
            }
            continue;
        }
        const bz_tensor_info *root = &p->tensors[t->root];
        if (!t->cols || !inside_root(p, t)) {
            return "an input is empty or lies outside its tensor";
        }
        if (!root->kept && !root->shared && (root->first < 0 || (size_t)root->first >= v->at)) {
            return "an input is not computed before it";
        }
    }
    for (unsigned i = 0; i < 2; i++) {
        const bz_tensor_info *t = info_of(p, s->out[i]);
        if (t ? !t->cols || !inside_root(p, t) : i < outputs || s->out[i].id) {
            return "an output is empty or does not exist";
        }
    }
    return NULL;
}

static problem check_step(step_view *v)
{
    const bz_step *s = v->s;
    if (s->w[0].id > v->p->weights->n) {
        return "its weight does not exist";
    }
    v->w = s->w[0].id ? bz_weight_of(v->p->weights, s->w[0]) : NULL;
    if (v->w && !bytes_fit(v->w, s->op == BZ_OP_LIST_ROWS)) {
        return "the bytes of its weight do not hold its shape";
    }
    const problem bad = check_tensors(v);
    return bad ? bad : check_op(v);
}

bz_status bz_plan_check(const bz_plan *p, bz_error *err)
{
    for (size_t i = 0; i < p->n_steps; i++) {
        const bz_step *s = &p->steps[i];
        step_view v = {.p = p,
                       .s = s,
                       .at = i,
                       .x = cols_of(p, s->in[0]),
                       .y = cols_of(p, s->in[1]),
                       .z = cols_of(p, s->in[2]),
                       .out = cols_of(p, s->out[0]),
                       .out1 = cols_of(p, s->out[1])};
        const problem bad = check_step(&v);
        if (bad) {
            char weight[120] = "", layer[40] = "";
            if (v.w) {
                snprintf(weight, sizeof weight, " (%.60s [%llu, %llu, %llu])", v.w->name,
                         (unsigned long long)v.w->ne[0], (unsigned long long)v.w->ne[1],
                         (unsigned long long)v.w->ne[2]);
            }
            if (s->layer >= 0) {
                snprintf(layer, sizeof layer, " of layer %d", (int)s->layer);
            }
            return bz_fail(err, BZ_BAD_FILE,
                           "The model's sizes contradict each other: the step %s%s cannot be "
                           "computed, because %s%s.",
                           s->name, layer, bad, weight);
        }
    }
    return BZ_OK;
}
