/* Steps of towers that one kernel does together: what stands between two products, attention with
 * its bounds. */
#include "gpu/lower/fuse.h"

enum { MOST_WIDE = 2048, MOST_HEAD = 128, MOST_NEAR = 256, MOST_FAR = 16, MOST_OUTS = 3 };

typedef struct walk {
    const bz_plan *p;
    size_t first, at;
    gpu_group g;
} walk;

static const bz_step *look(const walk *w)
{
    return w->at < w->p->n_steps ? &w->p->steps[w->at] : NULL;
}

/* The step at hand, if it is of that kind and reads `x`. */
static const bz_step *reads(const walk *w, bz_op op, int input, bz_tensor x)
{
    const bz_step *s = look(w);
    return s && s->op == op && (!x.id || s->in[input].id == x.id) ? s : NULL;
}

/* Takes the step at hand into the group; its place there, from 1. */
static uint8_t take(walk *w)
{
    return (uint8_t)(++w->at - w->first);
}

/* A clamp of x, if there is one: what comes out. */
static bz_tensor clamped(walk *w, bz_tensor x, uint8_t *place)
{
    const bz_step *s = reads(w, BZ_OP_CLAMP, 0, x);
    if (!s) {
        return x;
    }
    *place = take(w);
    return s->out[0];
}

static const bz_tensor_info *info(const walk *w, bz_tensor t)
{
    return bz_plan_tensor(w->p, t);
}

static bool is_read_behind(const walk *w, bz_tensor t)
{
    return info(w, t)->last >= (int32_t)w->at;
}

static bool is_even(const walk *w, bz_tensor t)
{
    return (info(w, t)->stride | info(w, t)->column | info(w, t)->cols) % 4 == 0;
}

static gpu_group done(walk *w, gpu_fusion fusion)
{
    w->g.fusion = fusion;
    w->g.count = (uint32_t)(w->at - w->first);
    return w->g;
}

static gpu_group none(void)
{
    return (gpu_group){.fusion = GPU_FUSE_NONE, .count = 1};
}

static bool is_row_norm(const walk *w, bz_tensor x)
{
    const bz_step *s = reads(w, BZ_OP_RMS_NORM, 0, x);
    return s && s->w[0].id && s->width == info(w, s->in[0])->cols && s->width <= MOST_WIDE &&
           is_even(w, s->in[0]);
}

/* Of a residual: what is added to, or nothing. */
static const bz_step *sum_of(const walk *w, bz_tensor x)
{
    const bz_step *plain = reads(w, BZ_OP_ADD, 1, x),
                  *s = plain ? plain : reads(w, BZ_OP_ADD_SCALED, 1, x);
    return s && (!plain || s->scale == 1.0f) && s->in[0].id != x.id && is_even(w, s->in[0]) ? s
                                                                                            : NULL;
}

/* [clamp] [rms_norm] add, as far as they are there: false if no sum comes. */
static bool residual(walk *w, bz_tensor *x)
{
    walk ahead = *w;
    const bz_step *s = look(w);
    bz_tensor y = s->in[0], inner[2] = {BZ_NO_TENSOR, BZ_NO_TENSOR};
    y = inner[0] = clamped(&ahead, y, &ahead.g.tower.clamp);
    inner[0] = ahead.g.tower.clamp ? inner[0] : BZ_NO_TENSOR;
    if (is_row_norm(&ahead, y)) {
        y = inner[1] = look(&ahead)->out[0];
        ahead.g.tower.norm = take(&ahead);
    }
    const bz_step *sum = sum_of(&ahead, y);
    if (!sum || !(inner[0].id || inner[1].id) || info(w, y)->cols > MOST_WIDE || !is_even(w, y)) {
        return false;
    }
    *x = sum->out[0];
    ahead.g.tower.add = take(&ahead);
    if ((inner[0].id && is_read_behind(&ahead, inner[0])) ||
        (inner[1].id && is_read_behind(&ahead, inner[1]))) {
        return false;
    }
    *w = ahead;
    return true;
}

/* Everything from a product's result to what the next products read. */
static gpu_group rows(walk w)
{
    bz_tensor x = BZ_NO_TENSOR;
    const bool summed = residual(&w, &x);
    walk ahead = w;
    while (summed && reads(&ahead, BZ_OP_CUT, 0, BZ_NO_TENSOR)) {
        ahead.at++;
    }
    if (is_row_norm(&ahead, x)) {
        bz_tensor normed = look(&ahead)->out[0];
        ahead.g.tower.then = take(&ahead);
        const bz_step *silu = reads(&ahead, BZ_OP_SILU, 0, normed);
        x = normed;
        if (silu) {
            x = silu->out[0];
            ahead.g.tower.silu = take(&ahead);
        }
        uint8_t clamps[MOST_OUTS + 1] = {0};
        uint32_t n = 0;
        while (n < MOST_OUTS && reads(&ahead, BZ_OP_CLAMP, 0, x)) {
            clamped(&ahead, x, &clamps[n++]);
        }
        const bool bare = is_read_behind(&ahead, x);
        if (n + bare > MOST_OUTS || (silu && is_read_behind(&ahead, normed))) {
            return summed ? done(&w, GPU_FUSE_ROWS) : none();
        }
        for (uint32_t i = 0; i < n; i++) {
            ahead.g.tower.outs[ahead.g.tower.n_outs++] = clamps[i];
        }
        if (bare) {
            ahead.g.tower.outs[ahead.g.tower.n_outs++] =
                ahead.g.tower.silu ? ahead.g.tower.silu : ahead.g.tower.then;
        }
        return ahead.at - ahead.first > 1 ? done(&ahead, GPU_FUSE_ROWS) : none();
    }
    return summed ? done(&w, GPU_FUSE_ROWS) : none();
}

/* [clamp] rms_norm of heads [rope] */
static gpu_group heads(walk w)
{
    bz_tensor x = look(&w)->in[0], inner = clamped(&w, x, &w.g.tower.clamp);
    const bz_step *norm = reads(&w, BZ_OP_RMS_NORM, 0, inner);
    if (!norm || norm->width > MOST_HEAD || norm->width >= info(&w, inner)->cols) {
        return none();
    }
    w.g.tower.norm = take(&w);
    const bz_step *rope = reads(&w, BZ_OP_ROPE, 0, norm->out[0]);
    if (rope && norm->w[0].id && info(&w, rope->in[1])->cols == norm->width &&
        norm->width % rope->width == 0) {
        w.g.tower.then = take(&w);
        if (is_read_behind(&w, norm->out[0])) {
            return none();
        }
    }
    return w.g.tower.clamp && is_read_behind(&w, inner) ? none() : done(&w, GPU_FUSE_HEADS);
}

/* [clamp] [clamp] geglu [clamp]; [clamp] silu [clamp]; [clamp] glu [clamp] */
static gpu_group gate(walk w)
{
    uint8_t *clamps = w.g.tower.outs; /* of the two inputs, then of the output */
    bz_tensor a = look(&w)->in[0], b = BZ_NO_TENSOR;
    a = clamped(&w, a, &clamps[0]);
    if (clamps[0] && reads(&w, BZ_OP_CLAMP, 0, BZ_NO_TENSOR)) {
        b = clamped(&w, look(&w)->in[0], &clamps[1]);
    }
    const bz_step *s = look(&w);
    if (!s || (s->op != BZ_OP_GEGLU && s->op != BZ_OP_SILU && s->op != BZ_OP_GLU) ||
        s->in[0].id != a.id ||
        (s->op == BZ_OP_GEGLU ? !s->in[1].id || (b.id && s->in[1].id != b.id) : b.id != 0) ||
        !is_even(&w, s->in[0]) || !is_even(&w, s->out[0]) ||
        (s->in[1].id && !is_even(&w, s->in[1]))) {
        return none();
    }
    w.g.tower.then = take(&w);
    const bz_tensor y = clamped(&w, s->out[0], &clamps[2]);
    const bool kept = (clamps[0] && is_read_behind(&w, a)) || (b.id && is_read_behind(&w, b)) ||
                      (y.id != s->out[0].id && is_read_behind(&w, s->out[0]));
    return kept ? none() : done(&w, GPU_FUSE_GATE);
}

static gpu_group attend_all(walk w)
{
    const bz_step *s = look(&w);
    w.at++;
    const bz_tensor y = clamped(&w, s->out[0], &w.g.tower.clamp);
    return y.id != s->out[0].id && !is_read_behind(&w, s->out[0]) ? done(&w, GPU_FUSE_ATTEND_ALL)
                                                                  : none();
}

/* A factor of queries or keys, with a clamp before it. */
static const bz_step *scaled(walk *w, uint8_t *clamp)
{
    bz_tensor x = look(w) ? clamped(w, look(w)->in[0], clamp) : BZ_NO_TENSOR;
    const bz_step *s = x.id ? reads(w, BZ_OP_MUL_VECTOR, 0, x) : NULL;
    if (s) {
        w->at++;
    }
    return s;
}

/* [clamp] mul_vector [clamp] mul_vector [clamp] local_scores local_sum [clamp] */
static gpu_group near(walk w)
{
    uint8_t *clamps = w.g.tower.outs;
    const bz_step *q = scaled(&w, &clamps[0]), *k = q ? scaled(&w, &clamps[1]) : NULL;
    if (!k || !q->w[0].id || k->w[0].id) {
        return none();
    }
    bz_tensor v = BZ_NO_TENSOR;
    if (reads(&w, BZ_OP_CLAMP, 0, BZ_NO_TENSOR)) {
        v = clamped(&w, look(&w)->in[0], &clamps[2]);
    }
    const bz_step *scores = reads(&w, BZ_OP_LOCAL_SCORES, 0, q->out[0]);
    if (!scores || scores->in[1].id != k->out[0].id || scores->width % 4 ||
        scores->width > MOST_NEAR || scores->window > MOST_FAR ||
        bz_weight_of(w.p->weights, q->w[0])->ne[0] != scores->width) {
        return none();
    }
    w.g.tower.norm = take(&w);
    const bz_step *sum = reads(&w, BZ_OP_LOCAL_SUM, 0, scores->out[0]);
    if (!sum || (v.id && sum->in[1].id != v.id)) {
        return none();
    }
    w.g.tower.then = take(&w);
    clamped(&w, sum->out[0], &w.g.tower.clamp);
    for (size_t i = w.first; i < w.at; i++) { /* nothing but the result leaves */
        if (i + 1 < w.at && is_read_behind(&w, w.p->steps[i].out[0])) {
            return none();
        }
    }
    return done(&w, GPU_FUSE_NEAR);
}

gpu_group gpu_fuse_tower(const gpu_fuse_rules *r, const bz_plan *p, size_t first)
{
    const walk w = {.p = p, .first = first, .at = first};
    gpu_group (*const rules[])(walk) = {near, rows, heads, gate};
    const bz_step *s = &p->steps[first];
    if (!r->fuse || s->op == BZ_OP_CUT || s->op == BZ_OP_INPUT || s->op == BZ_OP_SINUSOIDS ||
        s->op == BZ_OP_ROPE_TABLE) {
        return none();
    }
    if (s->op == BZ_OP_ATTEND_ALL) {
        return attend_all(w);
    }
    if (s->op == BZ_OP_LAYER_NORM && first + 1 < p->n_steps &&
        p->steps[first + 1].op == BZ_OP_RELU && p->steps[first + 1].in[0].id == s->out[0].id &&
        bz_plan_tensor(p, s->out[0])->last == (int32_t)first + 1) {
        return (gpu_group){.fusion = GPU_FUSE_LAYER_NORM, .count = 2};
    }
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const gpu_group g = rules[i](w);
        if (g.fusion != GPU_FUSE_NONE) {
            return g;
        }
    }
    return none();
}
