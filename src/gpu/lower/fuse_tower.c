/* Fusion of towers: what stands between two products, and attention with its clamps. */
#include "gpu/lower/fuse.h"

enum { MAX_ROW = 2048, MAX_HEAD = 128, MAX_LOCAL_HEAD = 256, MAX_LOCAL_WINDOW = 16 };

/* Steps taken into a group so far: first .. next. */
typedef struct cursor {
    const bz_plan *p;
    size_t first, next;
} cursor;

static const bz_step *peek(const cursor *c)
{
    return c->next < c->p->n_steps ? &c->p->steps[c->next] : NULL;
}

/* The next step, if it is of that kind and reads `x` (any tensor if none). */
static const bz_step *peek_reader(const cursor *c, bz_op op, int input, bz_tensor x)
{
    const bz_step *s = peek(c);
    return s && s->op == op && (!x.id || s->in[input].id == x.id) ? s : NULL;
}

/* Takes the next step into the group; its number there, from 1. */
static uint8_t take(cursor *c)
{
    return (uint8_t)(++c->next - c->first);
}

/* Takes a clamp of x if that is next; returns the result, or x. */
static bz_tensor take_clamp(cursor *c, bz_tensor x, uint8_t *number)
{
    const bz_step *s = peek_reader(c, BZ_OP_CLAMP, 0, x);
    if (!s) {
        return x;
    }
    *number = take(c);
    return s->out[0];
}

static const bz_tensor_info *info(const cursor *c, bz_tensor t)
{
    return bz_plan_tensor(c->p, t);
}

static bool is_read_after(const cursor *c, bz_tensor t)
{
    return info(c, t)->last >= (int32_t)c->next;
}

/* Are rows whole vec4s? */
static bool has_vec4_rows(const cursor *c, bz_tensor t)
{
    return (info(c, t)->stride | info(c, t)->column | info(c, t)->cols) % 4 == 0;
}

static void finish(const cursor *c, gpu_fusion fusion, gpu_group *g)
{
    g->fusion = fusion;
    g->count = (uint32_t)(c->next - c->first);
}

static bool is_row_norm(const cursor *c, bz_tensor x)
{
    const bz_step *s = peek_reader(c, BZ_OP_RMS_NORM, 0, x);
    return s && s->w[0].id && s->width == info(c, s->in[0])->cols && s->width <= MAX_ROW &&
           has_vec4_rows(c, s->in[0]);
}

/* The next step, if it adds x to another tensor. */
static const bz_step *peek_add(const cursor *c, bz_tensor x)
{
    const bz_step *plain = peek_reader(c, BZ_OP_ADD, 1, x),
                  *s = plain ? plain : peek_reader(c, BZ_OP_ADD_SCALED, 1, x);
    return s && (!plain || s->scale == 1.0f) && s->in[0].id != x.id && has_vec4_rows(c, s->in[0])
               ? s
               : NULL;
}

/* [clamp] [rms_norm] add, at least two of them: false if there is no sum. *x: the sum. */
static bool take_residual(cursor *c, gpu_group *g, bz_tensor *x)
{
    cursor ahead = *c;
    gpu_group made = *g;
    bz_tensor y = peek(c)->in[0], inner[2] = {BZ_NO_TENSOR, BZ_NO_TENSOR};
    y = take_clamp(&ahead, y, &made.rows.clamp);
    inner[0] = made.rows.clamp ? y : BZ_NO_TENSOR;
    if (is_row_norm(&ahead, y)) {
        y = inner[1] = peek(&ahead)->out[0];
        made.rows.norm = take(&ahead);
    }
    const bz_step *sum = peek_add(&ahead, y);
    if (!sum || !(inner[0].id || inner[1].id) || info(c, y)->cols > MAX_ROW ||
        !has_vec4_rows(c, y)) {
        return false;
    }
    *x = sum->out[0];
    made.rows.add = take(&ahead);
    if ((inner[0].id && is_read_after(&ahead, inner[0])) ||
        (inner[1].id && is_read_after(&ahead, inner[1]))) {
        return false;
    }
    *c = ahead;
    *g = made;
    return true;
}

/* rms_norm [silu] [clamp ...]: false if it is not there, or more results are read than the kernel
 * writes. x: what is normalized; none: anything. */
static bool take_out_norm(cursor *c, gpu_group *g, bz_tensor x)
{
    if (!is_row_norm(c, x)) {
        return false;
    }
    const bz_tensor normed = peek(c)->out[0];
    g->rows.out_norm = take(c);
    const bz_step *silu = peek_reader(c, BZ_OP_SILU, 0, normed);
    x = normed;
    if (silu) {
        x = silu->out[0];
        g->rows.silu = take(c);
    }
    while (g->rows.n_outs < GPU_MAX_ROWS_OUTS && peek_reader(c, BZ_OP_CLAMP, 0, x)) {
        take_clamp(c, x, &g->rows.outs[g->rows.n_outs++]);
    }
    const bool unclamped = is_read_after(c, x);
    if (g->rows.n_outs + unclamped > GPU_MAX_ROWS_OUTS || (silu && is_read_after(c, normed))) {
        return false;
    }
    if (unclamped) {
        g->rows.outs[g->rows.n_outs++] = g->rows.silu ? g->rows.silu : g->rows.out_norm;
    }
    return true;
}

/* Everything from a product's result to what the next products read. */
static bool match_rows(const gpu_lower_input *in, size_t first, gpu_group *g)
{
    cursor c = {in->plan, first, first};
    bz_tensor x = BZ_NO_TENSOR;
    const bool summed = take_residual(&c, g, &x);
    cursor ahead = c;
    gpu_group longer = *g;
    while (summed && peek_reader(&ahead, BZ_OP_CUT, 0, BZ_NO_TENSOR)) {
        ahead.next++;
    }
    if (take_out_norm(&ahead, &longer, x)) {
        *g = longer;
        c = ahead;
    }
    finish(&c, GPU_FUSE_ROWS, g);
    return g->count > 1;
}

static bool match_heads(const gpu_lower_input *in, size_t first, gpu_group *g)
{
    cursor c = {in->plan, first, first};
    const bz_tensor inner = take_clamp(&c, peek(&c)->in[0], &g->heads.clamp);
    const bz_step *norm = peek_reader(&c, BZ_OP_RMS_NORM, 0, inner);
    if (!norm || norm->width > MAX_HEAD || norm->width >= info(&c, inner)->cols) {
        return false;
    }
    g->heads.norm = take(&c);
    const bz_step *rope = peek_reader(&c, BZ_OP_ROPE, 0, norm->out[0]);
    if (rope && norm->w[0].id && info(&c, rope->in[1])->cols == norm->width &&
        norm->width % rope->width == 0) {
        g->heads.rope = take(&c);
        if (is_read_after(&c, norm->out[0])) {
            return false;
        }
    }
    finish(&c, GPU_FUSE_HEADS, g);
    return !g->heads.clamp || !is_read_after(&c, inner);
}

static bool match_gate(const gpu_lower_input *in, size_t first, gpu_group *g)
{
    cursor c = {in->plan, first, first};
    bz_tensor a = take_clamp(&c, peek(&c)->in[0], &g->gate.clamp[0]), b = BZ_NO_TENSOR;
    if (g->gate.clamp[0] && peek_reader(&c, BZ_OP_CLAMP, 0, BZ_NO_TENSOR)) {
        b = take_clamp(&c, peek(&c)->in[0], &g->gate.clamp[1]);
    }
    const bz_step *s = peek(&c);
    if (!s || (s->op != BZ_OP_GEGLU && s->op != BZ_OP_SILU && s->op != BZ_OP_GLU) ||
        s->in[0].id != a.id ||
        (s->op == BZ_OP_GEGLU ? !s->in[1].id || (b.id && s->in[1].id != b.id) : b.id != 0) ||
        !has_vec4_rows(&c, s->in[0]) || !has_vec4_rows(&c, s->out[0]) ||
        (s->in[1].id && !has_vec4_rows(&c, s->in[1]))) {
        return false;
    }
    g->gate.op = take(&c);
    const bz_tensor y = take_clamp(&c, s->out[0], &g->gate.clamp_out);
    finish(&c, GPU_FUSE_GATE, g);
    return !(g->gate.clamp[0] && is_read_after(&c, a)) && !(b.id && is_read_after(&c, b)) &&
           !(y.id != s->out[0].id && is_read_after(&c, s->out[0]));
}

static bool match_attend_all(const gpu_lower_input *in, size_t first, gpu_group *g)
{
    cursor c = {in->plan, first, first};
    const bz_step *s = peek(&c);
    uint8_t clamp = 0;
    if (s->op != BZ_OP_ATTEND_ALL) {
        return false;
    }
    c.next++;
    const bz_tensor y = take_clamp(&c, s->out[0], &clamp);
    finish(&c, GPU_FUSE_ATTEND_ALL, g);
    return y.id != s->out[0].id && !is_read_after(&c, s->out[0]);
}

/* [clamp] mul_vector: the scaled queries or keys, or NULL. */
static const bz_step *take_scaled(cursor *c, uint8_t *clamp)
{
    const bz_tensor x = peek(c) ? take_clamp(c, peek(c)->in[0], clamp) : BZ_NO_TENSOR;
    const bz_step *s = x.id ? peek_reader(c, BZ_OP_MUL_VECTOR, 0, x) : NULL;
    if (s) {
        c->next++;
    }
    return s;
}

static bool match_local_attend(const gpu_lower_input *in, size_t first, gpu_group *g)
{
    cursor c = {in->plan, first, first};
    const bz_step *q = take_scaled(&c, &g->local.clamp[0]),
                  *k = q ? take_scaled(&c, &g->local.clamp[1]) : NULL;
    if (!k || !q->w[0].id || k->w[0].id) {
        return false;
    }
    bz_tensor v = BZ_NO_TENSOR;
    if (peek_reader(&c, BZ_OP_CLAMP, 0, BZ_NO_TENSOR)) {
        v = take_clamp(&c, peek(&c)->in[0], &g->local.clamp[2]);
    }
    const bz_step *scores = peek_reader(&c, BZ_OP_LOCAL_SCORES, 0, q->out[0]);
    if (!scores || scores->in[1].id != k->out[0].id || scores->width % 4 ||
        scores->width > MAX_LOCAL_HEAD || scores->window > MAX_LOCAL_WINDOW ||
        bz_weight_of(c.p->weights, q->w[0])->ne[0] != scores->width) {
        return false;
    }
    g->local.scores = take(&c);
    const bz_step *sum = peek_reader(&c, BZ_OP_LOCAL_SUM, 0, scores->out[0]);
    if (!sum || (v.id && sum->in[1].id != v.id)) {
        return false;
    }
    g->local.sum = take(&c);
    take_clamp(&c, sum->out[0], &g->local.clamp_out);
    for (size_t i = c.first; i + 1 < c.next; i++) { /* only the last result is read after it */
        if (is_read_after(&c, c.p->steps[i].out[0])) {
            return false;
        }
    }
    finish(&c, GPU_FUSE_LOCAL_ATTEND, g);
    return true;
}

static bool match_layer_norm(const gpu_lower_input *in, size_t first, gpu_group *g)
{
    const bz_plan *p = in->plan;
    const bz_step *s = &p->steps[first];
    g->fusion = GPU_FUSE_LAYER_NORM;
    g->count = 2;
    return s->op == BZ_OP_LAYER_NORM && first + 1 < p->n_steps && s[1].op == BZ_OP_RELU &&
           s[1].in[0].id == s->out[0].id &&
           bz_plan_tensor(p, s->out[0])->last == (int32_t)first + 1;
}

static const gpu_fusion_rule rules[] = {
    {"attend-clamp", "attend_all clamp", match_attend_all},
    {"layer-norm-relu", "layer_norm relu", match_layer_norm},
    {"local-attend", "mul_vector mul_vector local_scores local_sum, each [clamp]",
     match_local_attend},
    {"rows", "[[clamp] [rms_norm] add] [rms_norm [silu] [clamp ...]]", match_rows},
    {"heads", "[clamp] rms_norm of heads [rope]", match_heads},
    {"gate", "[clamp] [clamp] geglu | silu | glu [clamp]", match_gate},
};

gpu_fusion_rules gpu_tower_rules(void)
{
    return (gpu_fusion_rules){rules, sizeof rules / sizeof *rules};
}
