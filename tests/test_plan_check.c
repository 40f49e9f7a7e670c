/* Every kind of step is refused when one of its tensors, its weight or its cache has another shape
 * or does not exist. */
#include <math.h>
#include <string.h>

#include "plan/recording.h"
#include "support/check.h"

enum { D = 8, HEADS = 2, HEAD = 4, KV_HEADS = 1, FFN = 12, VOCAB = 20, EXPERTS = 4, USED = 2 };
enum { KERNEL = 3, WINDOW = 3, BINS = 4, FRAMES = 4, CHANNELS = 5, ODD = 7, RANK = 3 };
enum { CLUSTERS = 5 };

static bz_weight_info infos[64];
static bz_weights weights = {.info = infos};
static const bz_cache_info cache = {.kv_heads = KV_HEADS, .head_dim = HEAD, .window = 5};

static bz_weight weight(const char *name, bz_type type, uint64_t k, uint64_t rows, uint64_t planes)
{
    infos[weights.n] = (bz_weight_info){.name = name,
                                        .type = type,
                                        .ne = {k, rows, planes},
                                        .size = bz_row_bytes(type, k) * rows * planes};
    return (bz_weight){++weights.n};
}

static bz_weight vector(const char *name, uint64_t n)
{
    return weight(name, BZ_F32, n, 1, 1);
}

static bz_weight matrix(const char *name, uint64_t in, uint64_t out)
{
    return weight(name, BZ_F16, in, out, 1);
}

/* All kinds of steps of a text or diffusion model. */
static bz_tensor record_text(bz_plan *p)
{
    bz_tensor kept = bz_kept_tensor(p, D), stats = BZ_NO_TENSOR, ids, by;
    bz_tensor angles = bz_rope_table(p, vector("freqs", HEAD / 2), HEAD, HEAD / 2, 1e4, "angles");
    bz_tensor x = bz_embed(p, matrix("embed", D, VOCAB), 1, "embed");
    x = bz_add(p, x, bz_read_kept(p, kept, "read_kept"), 1, "add");
    x = bz_rms_norm(p, x, vector("norm", D), D, 1e-6f, "norm");
    bz_tensor q = bz_linear(p, x, matrix("q", D, HEADS * HEAD), "q");
    bz_tensor k = bz_linear(p, x, matrix("k", D, KV_HEADS * HEAD), "k");
    q = bz_rope(p, q, angles, HEAD, "rope");
    bz_kv_write(p, k, k, (bz_cache){1}, "kv");
    q = bz_attend(p, q, (bz_cache){1}, HEADS, HEAD, 5, "attend");
    q = bz_scale(p, q, vector("scale", 1), "scale");
    bz_tensor r = bz_mul_vector(p, x, vector("router_scale", D), 1, "mul_vector");
    r = bz_linear(p, r, matrix("router", D, EXPERTS), "router");
    bz_route(p, r, USED, &ids, &by, "route");
    bz_tensor gate_up = bz_expert_linear(p, x, ids, weight("gate_up", BZ_F16, D, 2 * FFN, EXPERTS),
                                         USED, "expert_linear");
    bz_tensor e = bz_geglu_fused(p, gate_up, FFN, "geglu_fused");
    e = bz_expert_linear(p, e, ids, weight("down", BZ_F16, FFN, D, EXPERTS), USED, "expert_down");
    e = bz_expert_sum(p, e, ids, by, vector("expert_scale", EXPERTS), USED, "expert_sum");
    x = bz_geglu(p, bz_add(p, q, x, 1, "sum"), e, "geglu");
    bz_tensor low = bz_linear(p, x, matrix("lora_a", D, 2 * RANK), "low");
    low = bz_columns(p, low, RANK, RANK); /* what another product of x does not use */
    bz_add_low_rank(p, x, low, BZ_NO_TENSOR, weight("lora_b", BZ_F32, 16, RANK, 1), 1, 0.5f,
                    "add_low_rank");
    low = bz_expert_linear(p, x, ids, weight("experts_a", BZ_F32, D, RANK, EXPERTS), USED, "lows");
    bz_add_low_rank(p, gate_up, low, ids, weight("experts_b", BZ_F32, 16, RANK, EXPERTS * 2), USED,
                    0.5f, "add_low_rank_experts");
    ids = BZ_NO_TENSOR;
    bz_best(p, bz_linear(p, x, matrix("draft_head", D, VOCAB), "draft_head"), 1, 0, &ids, "best");
    bz_tensor drafted = bz_embed_best(p, ids, 0, matrix("drafted", D, VOCAB), 1, "embed_best");
    drafted = bz_concat(p, drafted, x, "concat");
    bz_linear(p, drafted, matrix("pre", 2 * D, D), "pre");
    bz_tensor list = bz_linear(p, x, matrix("centroids", D, CLUSTERS), "centroids");
    list = bz_top(p, list, USED, "top");
    list = bz_list_rows(p, list, weight("ids", BZ_I32, VOCAB / CLUSTERS, CLUSTERS, 1), "list_rows");
    bz_tensor some = bz_linear_listed(p, x, list, matrix("listed", D, VOCAB), "linear_listed");
    ids = BZ_NO_TENSOR;
    bz_best_listed(p, some, list, 1, 0, &ids, "best_listed");
    bz_embed_best(p, ids, 0, matrix("drafted_listed", D, VOCAB), 1, "embed_best_listed");
    bz_cut(p, "cut");
    bz_mean_rows(p, x, "mean_rows");
    x = bz_take_rows(p, x, "take_rows");
    bz_share(p, x, bz_shared_tensor(p, D, false), "share");
    x = bz_linear(p, x, matrix("head", D, VOCAB), "head");
    x = bz_softcap(p, x, 30, "softcap");
    bz_logit_stats(p, x, 0, &stats, "logit_stats");
    bz_soft_embed(p, x, stats, matrix("table", D, VOCAB), 1, 0, kept, "soft_embed");
    return stats;
}

/* All kinds of steps that only towers have. */
static bz_tensor record_tower(bz_plan *p)
{
    p->tower = true;
    bz_tensor angles = bz_rope_table_2d(p, HEAD / 2, 100, "angles_2d");
    bz_tensor x = bz_input_rows(p, D, "input");
    x = bz_position_embed(p, x, weight("position", BZ_F32, D, 6, 2), "position_embed");
    x = bz_clamp(p, x, -1, 1, "clamp");
    x = bz_layer_norm(p, x, vector("ln", D), D, 1e-6f, "layer_norm");
    x = bz_add_vector(p, x, vector("bias", D), 1, "add_vector");
    x = bz_add_scaled(p, x, bz_silu(p, bz_relu(p, x, "relu"), "silu"), 1, "add_scaled");
    x = bz_rope(p, x, angles, HEAD / 2, "rope_2d");
    x = bz_attend_all(p, x, x, x, HEADS, HEAD, "attend_all");
    x = bz_glu(p, bz_linear(p, x, matrix("pw", D, 2 * D), "pw"), "glu");
    x = bz_conv_time(p, bz_multiply(p, x, 2, "multiply"), weight("dw", BZ_F32, KERNEL, D, 1),
                     "conv_time");
    bz_tensor near = bz_linear(p, bz_sinusoids(p, D, 1e4, "sinusoids"), matrix("rel", D, D), "rel");
    bz_tensor scores = bz_local_scores(p, x, x, near, HEADS, WINDOW, 50, "local_scores");
    x = bz_local_sum(p, scores, x, HEADS, WINDOW, "local_sum");
    bz_tensor c = bz_input_rows(p, FRAMES * BINS, "features");
    c = bz_conv(p, c, weight("conv", BZ_F32, 9, CHANNELS, 1), FRAMES, BINS, 1, "conv");
    x = bz_add(p, x, bz_linear(p, c, matrix("in", FRAMES / 2 * (BINS / 2) * CHANNELS, D), "in"), 1,
               "add");
    return bz_pool_patches(p, x, 3, 1, "pool");
}

static bz_plan *record(bz_tensor (*steps)(bz_plan *p))
{
    bz_plan *p = NULL;
    bz_error err = {0};
    weights.n = 0;
    CHECK(bz_plan_new(&p, &weights, &cache, 1, 4, WINDOW, &err) == BZ_OK);
    const bz_tensor output = steps(p);
    CHECKF(bz_plan_finish(p, output, &err) == BZ_OK, "%s", err.text);
    return p;
}

static void must_fail(const bz_plan *p, const bz_step *s, const char *what)
{
    bz_error err = {0};
    const bz_status status = bz_plan_check(p, &err);
    /* Another number of logits is right for a router, but not for its experts; of clusters, but not
     * for their table. */
    CHECKF(status == BZ_BAD_FILE &&
               (s->op == BZ_OP_ROUTE || s->op == BZ_OP_TOP || strstr(err.text, s->name)),
           "%s with %s: %s", s->name, what, status == BZ_OK ? "passes" : err.text);
}

/* Steps that work without their weight. */
static bool weight_is_optional(bz_op op)
{
    return op == BZ_OP_RMS_NORM || op == BZ_OP_MUL_VECTOR || op == BZ_OP_ROPE_TABLE ||
           op == BZ_OP_EXPERT_SUM;
}

static void break_weight(const bz_plan *p, bz_step *s)
{
    const bz_step good = *s;
    s->w[0] = BZ_NO_WEIGHT;
    if (!weight_is_optional(s->op)) {
        must_fail(p, s, "no weight");
    }
    s->w[0].id = weights.n + 1;
    must_fail(p, s, "a weight past the table");
    *s = good;
    bz_weight_info *w = &infos[s->w[0].id - 1];
    const bz_weight_info right = *w;
    for (int i = 0; i < 3; i++) {
        w->ne[i] = ODD * right.ne[i] + 1;
        w->size = UINT64_MAX;
        const bool any_length =
            s->op == BZ_OP_POSITION_EMBED || (s->op == BZ_OP_EMBED && !s->in[0].id);
        if (i != 1 || !any_length) {
            must_fail(p, s, "a weight of another shape");
        }
        *w = right;
    }
    w->size--;
    must_fail(p, s, "a weight that is cut off");
    *w = right;
    w->type = BZ_Q8_0;
    must_fail(p, s, "rows that are not whole blocks");
    *w = right;
}

static void break_tensors(const bz_plan *p, bz_step *s, bz_tensor odd)
{
    const bz_step good = *s;
    for (int i = 0; i < 3; i++) {
        if (s->in[i].id) {
            s->in[i] = odd;
            if (s->op != BZ_OP_LOGIT_STATS) { /* any vocabulary */
                must_fail(p, s, "an input of another size");
            }
            s->in[i].id = (uint32_t)p->n_tensors;
            must_fail(p, s, "an input past the table");
            s->in[i] = good.in[i];
        }
    }
    for (int i = 0; i < 2; i++) {
        if (s->out[i].id) {
            s->out[i] = odd;
            if (s->op != BZ_OP_INPUT) { /* may have any size */
                must_fail(p, s, "an output of another size");
            }
            s->out[i] = BZ_NO_TENSOR;
            must_fail(p, s, "no output");
            s->out[i] = good.out[i];
        }
    }
    if (s->in[0].id && s->op != BZ_OP_EMBED) { /* then the host's ids are embedded */
        s->in[0] = BZ_NO_TENSOR;
        must_fail(p, s, "no input");
        *s = good;
    }
}

static void break_numbers(const bz_plan *p, bz_step *s)
{
    const bz_step good = *s;
    uint32_t *const numbers[] = {&s->width,  &s->heads, &s->experts_used,
                                 &s->frames, &s->axes,  &s->channels};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const bool unused = s->op == BZ_OP_RELU || s->op == BZ_OP_SILU || s->op == BZ_OP_POOL ||
                            (s->op == BZ_OP_GEGLU && s->in[1].id) ||
                            (s->op == BZ_OP_MUL_VECTOR && !s->w[0].id);
        if (*numbers[i] && !unused) {
            *numbers[i] = *numbers[i] * ODD + 1;
            must_fail(p, s, "another number");
            *numbers[i] = 0;
            must_fail(p, s, "0");
            *s = good;
        }
    }
    if (s->cache.id) {
        s->cache.id = 0;
        must_fail(p, s, "no cache");
        s->cache.id = 2;
        must_fail(p, s, "a cache past the table");
        *s = good;
    }
    if (s->op == BZ_OP_ATTEND) {
        s->window = cache.window + 2; /* a drafter reads one position more than the model */
        must_fail(p, s, "a window that the cache does not keep");
        *s = good;
    }
    if (s->op == BZ_OP_BEST || (s->op == BZ_OP_EMBED && s->in[0].id)) {
        s->width = 1;
        must_fail(p, s, "a column past the last");
        *s = good;
    }
    if (s->op == BZ_OP_TAKE_ROWS || s->op == BZ_OP_LOGIT_STATS || s->op == BZ_OP_SOFT_EMBED) {
        s->first_row = p->rows;
        must_fail(p, s, "rows past the end");
        *s = good;
    }
}

static void test_steps(bz_tensor (*steps)(bz_plan *p), bool *seen)
{
    bz_plan *p = record(steps);
    const bz_tensor odd = bz_new_tensor(p, 77, true);
    p->tensors[odd.id].first = 0; /* computed before every other step */
    for (size_t i = 1; i < p->n_steps; i++) {
        bz_step *s = &p->steps[i];
        seen[s->op] = true;
        begin("%s %s", bz_op_name(s->op), s->name);
        CHECK(bz_plan_check(p, NULL) == BZ_OK);
        if (s->w[0].id) {
            break_weight(p, s);
        }
        if (s->op != BZ_OP_CUT) {
            break_tensors(p, s, odd);
            break_numbers(p, s);
        }
    }
    seen[p->steps[0].op] = true;
    bz_plan_free(p);
}

static bz_tensor record_missing(bz_plan *p)
{
    p->layer = 3;
    return bz_linear(p, bz_input_rows(p, D, "input"), BZ_NO_WEIGHT, "k_proj");
}

static bz_tensor record_too_large(bz_plan *p)
{
    return bz_embed(p, weight("wide", BZ_F16, 1u << 30, 1, 1), 1, "embed");
}

int main(void)
{
    bool seen[64] = {false};
    bz_error err = {0};
    bz_plan *p = NULL;
    test_steps(record_text, seen);
    test_steps(record_tower, seen);
    begin("every kind of step");
#define BZ_OP_SEEN(name, text) CHECKF(seen[BZ_OP_##name], "%s", text);
    BZ_OP_LIST(BZ_OP_SEEN)
#undef BZ_OP_SEEN

    begin("a weight that does not exist fails the plan");
    CHECK(bz_plan_new(&p, &weights, NULL, 0, 4, 1, &err) == BZ_OK);
    CHECK(bz_plan_finish(p, record_missing(p), &err) == BZ_BAD_FILE);
    CHECKF(strstr(err.text, "no weight for the step k_proj of layer 3"), "%s", err.text);
    bz_plan_free(p);

    begin("a plan that no machine can hold");
    CHECK(bz_plan_new(&p, &weights, NULL, 0, UINT32_MAX, 1, &err) == BZ_OK);
    CHECK(bz_plan_finish(p, record_too_large(p), &err) == BZ_OUT_OF_MEMORY);
    CHECKF(strstr(err.text, "more memory than this machine can address"), "%s", err.text);
    bz_plan_free(p);
    return finish();
}
