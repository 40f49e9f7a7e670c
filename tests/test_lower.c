/* Plans lowered to lists of dispatches, without an adapter: every step is computed exactly once,
 * nothing is overwritten that the same dispatch reads, limits hold, each fusion rule fires where it
 * should, and the same input gives the same list. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/lower/fuse.h"
#include "gpu/run/weights.h"
#include "model/diffusion.h"
#include "model/text.h"
#include "session/adapter.h"
#include "session/model.h"
#include "support/check.h"
#include "support/forward.h"
#include "support/golden.h"
#include "support/lora.h"
#include "support/media.h"
#include "support/parity.h"
#include "support/random.h"

/* A large GPU; cases change what they are about. */
static const gpu_limits large = {.max_buffer = 1u << 30,
                                 .max_binding = 1u << 30,
                                 .max_storage_buffers = 8,
                                 .max_workgroup_storage = 49152,
                                 .max_invocations = 256,
                                 .max_workgroups = 65535,
                                 .min_storage_offset = 256,
                                 .min_uniform_offset = 256,
                                 .subgroups = true,
                                 .packed_dot = true,
                                 .subgroup_min = 32,
                                 .subgroup_max = 32,
                                 .matrices = true};

static gpu_limits software(void)
{
    gpu_limits limits = large;
    limits.sequential = true;
    limits.matrices = false;
    return limits;
}

/* ---- properties of every list ------------------------------------------------------------- */

static bool same_binding(const gpu_dispatch_binding *a, const gpu_dispatch_binding *b)
{
    return a->kind == b->kind && a->at.buffer == b->at.buffer && a->at.offset == b->at.offset &&
           a->at.size == b->at.size;
}

static bool same_dispatch(const gpu_dispatch *a, const gpu_dispatch *b)
{
    bool same = a->kernel == b->kernel && a->type == b->type && a->cache == b->cache &&
                a->combines == b->combines && memcmp(&a->split, &b->split, sizeof a->split) == 0 &&
                a->side == b->side && a->x == b->x && a->y == b->y && a->z == b->z &&
                a->rule == b->rule &&
                memcmp(&a->overrides, &b->overrides, sizeof a->overrides) == 0 &&
                memcmp(&a->params, &b->params, sizeof a->params) == 0 &&
                same_binding(&a->weights, &b->weights);
    for (int i = 0; i < GPU_MAX_EXTRA_BINDINGS; i++) {
        same = same && same_binding(&a->extra[i], &b->extra[i]);
    }
    return same;
}

static void check_deterministic(const gpu_lower_input *in, const gpu_lowered *l)
{
    gpu_lowered again;
    if (!CHECK(gpu_lower(in, &again, NULL) == BZ_OK)) {
        return;
    }
    bool same = again.n == l->n && again.arena_bytes == l->arena_bytes &&
                again.scratch_bytes == l->scratch_bytes && again.side_bytes == l->side_bytes;
    for (uint32_t i = 0; i < l->n && same; i++) {
        same = same_dispatch(&l->dispatches[i], &again.dispatches[i]);
    }
    CHECKF(same, "lowered twice, the lists differ");
    gpu_lowered_free(&again);
}

static bool needs_no_dispatch(bz_op op)
{
    return op == BZ_OP_CUT || op == BZ_OP_ROPE_TABLE || op == BZ_OP_INPUT || op == BZ_OP_SINUSOIDS;
}

/* Every step belongs to the dispatches of one group, and to one group only. */
static void check_coverage(const gpu_lowered *l)
{
    const bz_plan *p = l->plan;
    uint32_t *owner = calloc(p->n_steps + 1, sizeof *owner); /* 1 + first step of the group */
    for (uint32_t i = 0; i < l->n; i++) {
        const gpu_dispatch *d = &l->dispatches[i];
        for (uint32_t k = 0; k < d->steps + d->n_later; k++) {
            const uint32_t s = k < d->steps ? d->first_step + k : d->later[k - d->steps];
            CHECKF(s < p->n_steps && (!owner[s] || owner[s] == 1 + d->first_step),
                   "step %u is computed by two groups", s);
            owner[s] = 1 + d->first_step;
        }
    }
    for (size_t s = 0; s < p->n_steps; s++) {
        CHECKF(owner[s] || needs_no_dispatch(p->steps[s].op), "step %zu (%s) has no dispatch", s,
               bz_op_name(p->steps[s].op));
    }
    free(owner);
}

static bool is_in_group(const gpu_fused *f, uint32_t group, const bz_tensor_info *t)
{
    return t->first >= 0 && f->group_of[t->first] == group;
}

/* Steps that read and write value by value, or write some rows of a tensor at a time. */
static bool may_work_in_place(const bz_plan *p, const bz_step *s)
{
    return s->op == BZ_OP_SOFTCAP || s->op == BZ_OP_LOGIT_STATS || s->op == BZ_OP_SOFT_EMBED ||
           p->tower;
}

/* What a group reads from before it must not overlap what it writes. */
static void check_overlap(const gpu_lower_input *in, const gpu_lowered *l)
{
    const bz_plan *p = in->plan;
    gpu_fused f;
    if (!CHECK(gpu_fuse(in, &f, NULL) == BZ_OK)) {
        return;
    }
    for (size_t a = 0; a < p->n_steps; a++) {
        for (size_t b = 0; b < p->n_steps; b++) {
            if (f.group_of[a] != f.group_of[b]) {
                continue;
            }
            for (int i = 0; i < 3; i++) {
                for (int o = 0; o < 2; o++) {
                    const uint32_t read = bz_plan_tensor(p, p->steps[a].in[i])->root,
                                   written = bz_plan_tensor(p, p->steps[b].out[o])->root;
                    const bz_tensor_info *r = &p->tensors[read], *w = &p->tensors[written];
                    if (!read || !written || is_in_group(&f, f.group_of[a], r)) {
                        continue;
                    }
                    const bool apart = l->offset[read] + r->bytes <= l->offset[written] ||
                                       l->offset[written] + w->bytes <= l->offset[read];
                    const bool in_place =
                        l->offset[read] == l->offset[written] && may_work_in_place(p, &p->steps[b]);
                    CHECKF(apart || in_place, "step %zu (%s) writes what step %zu (%s) reads", b,
                           bz_op_name(p->steps[b].op), a, bz_op_name(p->steps[a].op));
                }
            }
        }
    }
    gpu_fused_free(&f);
}

static void check_limits(const gpu_lower_input *in, const gpu_lowered *l)
{
    const gpu_limits *limits = in->limits;
    for (uint32_t i = 0; i < l->n; i++) {
        const gpu_dispatch *d = &l->dispatches[i];
        char name[48];
        gpu_kernel_name(d->kernel, d->type, name, sizeof name);
        CHECKF(d->weights.at.size <= limits->max_binding, "%s binds too much", name);
        CHECKF(d->x >= 1 && d->y >= 1 && d->x <= limits->max_workgroups &&
                   d->y <= limits->max_workgroups && d->z <= limits->max_workgroups,
               "%s has %u x %u x %u workgroups", name, d->x, d->y, d->z);
        CHECKF(gpu_kernel_has_type(d->kernel, d->type), "%s does not exist", name);
    }
    CHECK(l->arena_bytes + l->scratch_bytes <= limits->max_binding &&
          l->side_bytes <= limits->max_binding);
}

/* Lowers and checks; the number of dispatches. */
static uint32_t check_lists(const gpu_lower_input *in)
{
    gpu_lowered l;
    bz_error err = {0};
    if (!CHECKF(gpu_lower(in, &l, &err) == BZ_OK, "%s", err.text)) {
        return 0;
    }
    check_deterministic(in, &l);
    check_coverage(&l);
    check_overlap(in, &l);
    check_limits(in, &l);
    const uint32_t n = l.n;
    gpu_lowered_free(&l);
    return n;
}

/* ---- models -------------------------------------------------------------------------------- */

typedef struct counts {
    uint32_t rows, fused, unfused; /* dispatches with int8 products */
} counts;

/* In exact sessions (f32 activations and caches) and in others, fused and not. */
static void check_plan(bz_plan *plan, const gpu_weights *w, const uint8_t *const *bytes,
                       const char *what, const counts *want)
{
    gpu_lower_input in = {
        .plan = plan, .weights = &w->map, .host_weights = bytes, .limits = &large, .fuse = true};
    begin("%s, %u rows", what, plan->rows);
    in.cache = BZ_CACHE_F32;
    const uint32_t exact = check_lists(&in);
    in.fuse = false;
    const uint32_t exact_unfused = check_lists(&in);
    in.cache = BZ_CACHE_F16;
    in.packed = true;
    const uint32_t unfused = check_lists(&in);
    in.fuse = true;
    const uint32_t fused = check_lists(&in);
    in.matrices = true;
    check_lists(&in);
    const gpu_limits sequential = software();
    in.limits = &sequential;
    const uint32_t joined = check_lists(&in);
    in.fuse = false;
    CHECK(joined < check_lists(&in));
    CHECKF(fused < unfused && exact < exact_unfused, "%u fused, %u not; exact %u, %u", fused,
           unfused, exact, exact_unfused);
    CHECKF(!want || (fused == want->fused && unfused == want->unfused), "%u dispatches, %u unfused",
           fused, unfused);
    bz_plan_free(plan);
}

static void test_text(const char *name, const counts want[4])
{
    char path[256];
    snprintf(path, sizeof path, "build/models/%s.gguf", name);
    bz_model *m = open_or_fail(path);
    gpu_weights w;
    bz_error err = {0};
    begin("%s: weights are placed", name);
    const bool placed =
        CHECK(gpu_weights_place(&w, &large, &m->text.weights.table, BZ_NO_WEIGHT, &err) == BZ_OK);
    for (int i = 0; i < 4 && placed; i++) {
        bz_plan *plan = NULL;
        if (CHECK(bz_text_record(&m->text, want[i].rows, 1, &plan, &err) == BZ_OK)) {
            check_plan(plan, &w, m->weight_bytes, name, &want[i]);
        }
    }
    gpu_weights_free(&w, NULL);
    bz_model_free(m);
}

/* Every matrix has an adapter: groups end where their results are adapted. */
static void test_adapted(const char *name)
{
    static const uint32_t rows[] = {1, 8, 64, 512};
    char path[256], what[64];
    golden file;
    gguf_build built;
    gpu_weights w;
    bz_adapter_set *set = NULL;
    bz_error err = {0};
    snprintf(path, sizeof path, "build/models/%s.gguf", name);
    snprintf(what, sizeof what, "%s, adapted", name);
    begin("%s: weights are placed", what);
    golden_open(&file, path);
    bz_model *m = open_or_fail(path);
    lora_begin(&built, "gemma4", 4);
    lora_all(&built, &file.gguf);
    gb_finish(&built);
    bz_adapter *a = built_adapter_or_fail(m, &built);
    CHECK(bz_adapter_set_new(&set, NULL, m, &(bz_adapter_use){a, 1}, 1, &err) == BZ_OK);
    CHECK(gpu_weights_place(&w, &large, &set->table, BZ_NO_WEIGHT, &err) == BZ_OK);
    for (int i = 0; i < 4; i++) {
        bz_plan *plan = NULL;
        if (CHECKF(bz_text_record(&set->text, rows[i], 1, &plan, &err) == BZ_OK, "%s", err.text)) {
            check_plan(plan, &w, set->bytes, what, NULL);
        }
    }
    gpu_weights_free(&w, NULL);
    bz_adapter_set_free(set);
    bz_adapter_free(a);
    bz_model_free(m);
    gb_free(&built);
    golden_close(&file);
}

static void test_canvas(void)
{
    bz_model *m = open_or_fail(golden_path("diffusion/text.gguf"));
    gpu_weights w;
    bz_plan *plan = NULL;
    bz_error err = {0};
    begin("diffusion: a canvas is recorded");
    if (CHECK(gpu_weights_place(&w, &large, &m->text.weights.table, BZ_NO_WEIGHT, &err) == BZ_OK &&
              bz_diffusion_record_canvas(&m->text, &plan, &err) == BZ_OK)) {
        check_plan(plan, &w, m->weight_bytes, "canvas", NULL);
    }
    gpu_weights_free(&w, NULL);
    bz_model_free(m);
}

static void test_towers(void)
{
    bz_model *m =
        open_two_or_fail(golden_path("e-like/text.gguf"), golden_path("e-like/mmproj.gguf"));
    for (int audio = 0; audio < 2; audio++) {
        gpu_weights w;
        bz_plan *plan = NULL;
        bz_error err = {0};
        begin("%s tower is recorded", audio ? "audio" : "vision");
        if (CHECK(gpu_weights_place(&w, &large, &m->towers.table, BZ_NO_WEIGHT, &err) == BZ_OK &&
                  (audio ? bz_audio_record(&m->towers, 64, &plan, &err)
                         : bz_vision_record(&m->towers, 576, 64, &plan, &err)) == BZ_OK)) {
            check_plan(plan, &w, NULL, audio ? "audio tower" : "vision tower", NULL);
        }
        gpu_weights_free(&w, NULL);
    }
    bz_model_free(m);
}

/* ---- fusion rules ---------------------------------------------------------------------------- */

enum { HEADS = 2, HEAD = 32, WIDTH = HEADS * HEAD, IDS = 64 };

static memory_weights weights;
static bz_weight table, row_norm, head_norm, scalar, matrix, matrix2, matrix_q4, tower_matrix;
static bz_weight low_a, low_b; /* an adapter of rank 4 for two products of one input */
static const bz_cache_info cache = {.kv_heads = 1, .head_dim = HEAD, .window = 16};

static bz_tensor norm(bz_plan *p, bz_tensor x)
{
    return bz_rms_norm(p, x, row_norm, WIDTH, 1e-6f, "norm");
}

static bz_tensor embedded(bz_plan *p)
{
    return bz_embed(p, table, 1, "x");
}

static bz_tensor record_norm_add(bz_plan *p)
{
    bz_tensor r = embedded(p), x = embedded(p);
    return bz_add(p, r, norm(p, x), 1, "y");
}

static bz_tensor record_norm_add_scale(bz_plan *p)
{
    return bz_scale(p, record_norm_add(p), scalar, "y");
}

static bz_tensor record_norm_mul(bz_plan *p)
{
    bz_tensor x = bz_rms_norm(p, embedded(p), BZ_NO_WEIGHT, WIDTH, 1e-6f, "norm");
    return bz_mul_vector(p, x, row_norm, 0.5f, "y");
}

static bz_tensor record_norm_rope(bz_plan *p)
{
    bz_tensor t = bz_rope_table(p, BZ_NO_WEIGHT, HEAD, HEAD / 2, 10000, "angles");
    return bz_rope(p, bz_rms_norm(p, embedded(p), head_norm, HEAD, 1e-6f, "norm"), t, HEAD, "y");
}

static bz_tensor record_attention(bz_plan *p)
{
    bz_tensor t = bz_rope_table(p, BZ_NO_WEIGHT, HEAD, HEAD / 2, 10000, "angles"), x = embedded(p);
    bz_tensor k = bz_rms_norm(p, bz_columns(p, x, 0, HEAD), head_norm, HEAD, 1e-6f, "k");
    k = bz_rope(p, k, t, HEAD, "k");
    bz_tensor v = bz_rms_norm(p, bz_columns(p, x, HEAD, HEAD), BZ_NO_WEIGHT, HEAD, 1e-6f, "v");
    bz_kv_write(p, k, v, (bz_cache){1}, "cache");
    bz_tensor q = bz_rms_norm(p, x, head_norm, HEAD, 1e-6f, "q");
    return bz_attend(p, bz_rope(p, q, t, HEAD, "q"), (bz_cache){1}, HEADS, HEAD, 16, "y");
}

static bz_tensor record_products(bz_plan *p)
{
    bz_tensor x = norm(p, embedded(p)), gate = bz_linear(p, x, matrix, "gate");
    return bz_geglu(p, gate, bz_linear(p, x, matrix2, "up"), "y");
}

static bz_tensor record_geglu_product(bz_plan *p)
{
    bz_tensor a = embedded(p), b = embedded(p);
    return bz_linear(p, bz_geglu(p, a, b, "gated"), matrix, "y");
}

static bz_tensor adapted(bz_plan *p, bz_tensor y, bz_tensor low, uint32_t first)
{
    return bz_add_low_rank(p, y, bz_columns(p, low, first, 4), BZ_NO_TENSOR, low_b, 1, 0.5f, "y");
}

static bz_tensor record_adapted_gate(bz_plan *p)
{
    bz_tensor x = norm(p, embedded(p)), low = bz_linear(p, x, low_a, "low"),
              gate = bz_linear(p, x, matrix, "gate"), up = bz_linear(p, x, matrix2, "up");
    gate = adapted(p, gate, low, 0);
    return bz_geglu(p, gate, adapted(p, up, low, 4), "y");
}

/* Only the second of them is adapted. */
static bz_tensor record_adapted_up(bz_plan *p)
{
    bz_tensor x = norm(p, embedded(p)), low = bz_linear(p, x, low_a, "low"),
              gate = bz_linear(p, x, matrix, "gate"), up = bz_linear(p, x, matrix2, "up");
    return bz_geglu(p, gate, adapted(p, up, low, 0), "y");
}

/* A product of another block type stands between the others and what is added to them. */
static bz_tensor record_adapted_types(bz_plan *p)
{
    bz_tensor x = embedded(p), low = bz_linear(p, x, low_a, "low");
    bz_tensor q = bz_linear(p, x, matrix, "q"), k = bz_linear(p, x, matrix2, "k"),
              v = bz_linear(p, x, matrix_q4, "v");
    q = adapted(p, q, low, 0);
    k = adapted(p, k, low, 4);
    v = adapted(p, v, low, 0);
    return bz_concat(p, bz_concat(p, q, k, "qk"), v, "y");
}

static bz_tensor record_geglu_adapted(bz_plan *p)
{
    bz_tensor a = embedded(p), b = embedded(p), x = bz_geglu(p, a, b, "gated"),
              low = bz_linear(p, x, low_a, "low");
    return adapted(p, bz_linear(p, x, matrix, "y"), low, 0);
}

/* The second norm stands after the first product. */
static bz_tensor record_norms(bz_plan *p)
{
    bz_tensor sum = record_norm_add(p);
    bz_tensor a = bz_linear(p, norm(p, sum), matrix, "a"),
              b = bz_linear(p, norm(p, sum), matrix2, "b");
    return bz_add(p, a, b, 0.5f, "y");
}

static bz_tensor record_norm_read_twice(bz_plan *p)
{
    bz_tensor r = embedded(p), n = norm(p, embedded(p));
    return bz_add(p, bz_add(p, r, n, 1, "sum"), n, 0.5f, "y");
}

static bz_tensor tower_input(bz_plan *p)
{
    return bz_input_rows(p, WIDTH, "x");
}

static bz_tensor record_rows(bz_plan *p)
{
    bz_tensor r = tower_input(p), x = bz_linear(p, r, tower_matrix, "product");
    bz_tensor sum = bz_add(p, r, norm(p, bz_clamp(p, x, -1, 1, "clamp")), 1, "sum");
    return bz_linear(p, norm(p, sum), tower_matrix, "y");
}

static bz_tensor record_heads(bz_plan *p)
{
    bz_tensor t = bz_rope_table_2d(p, HEAD / 2, 100, "angles"), x = tower_input(p);
    return bz_rope(p, bz_rms_norm(p, x, head_norm, HEAD, 1e-6f, "norm"), t, HEAD / 2, "y");
}

static bz_tensor record_gate(bz_plan *p)
{
    bz_tensor a = tower_input(p), b = bz_linear(p, a, tower_matrix, "up");
    return bz_clamp(p, bz_geglu(p, bz_clamp(p, a, -1, 1, "in"), b, "gated"), -2, 2, "y");
}

static bz_tensor record_attend_clamp(bz_plan *p)
{
    bz_tensor x = tower_input(p), k = bz_linear(p, x, tower_matrix, "k");
    return bz_clamp(p, bz_attend_all(p, x, k, k, HEADS, HEAD, "attended"), -1, 1, "y");
}

static bz_tensor record_layer_norm_relu(bz_plan *p)
{
    return bz_relu(p, bz_layer_norm(p, tower_input(p), row_norm, WIDTH, 1e-6f, "norm"), "y");
}

static bz_tensor record_local_attend(bz_plan *p)
{
    bz_tensor x = tower_input(p), far = bz_sinusoids(p, WIDTH, 10000, "far"),
              v = bz_linear(p, x, tower_matrix, "v"), k = bz_linear(p, x, tower_matrix, "k"),
              q = bz_linear(p, x, tower_matrix, "q");
    q = bz_mul_vector(p, q, head_norm, 0.5f, "q");
    k = bz_multiply(p, k, 0.25f, "k");
    bz_tensor scores = bz_local_scores(p, q, k, far, HEADS, 8, 50, "scores");
    return bz_local_sum(p, scores, v, HEADS, 8, "y");
}

typedef struct rule_case {
    const char *what;
    bz_tensor (*record)(bz_plan *p);
    const char *rules8, *rules64; /* that fire with 8 and with 64 rows and int8, in order */
} rule_case;

static const rule_case rule_cases[] = {
    {"norm and add", record_norm_add, "norm-add", "norm-add"},
    {"norm, add and scale", record_norm_add_scale, "norm-add-scale", "norm-add-scale"},
    {"norm without weight, times a vector", record_norm_mul, "norm-mul", "norm-mul"},
    {"norm and rope", record_norm_rope, "norm-rope", "norm-rope"},
    {"keys, values and attention", record_attention, "kv attend", "kv"},
    {"norm, gate, up and geglu", record_products, "products", "norms"},
    {"geglu and product", record_geglu_product, "", "geglu-product"},
    {"norm, adapted gate and up, geglu", record_adapted_gate, "products products",
     "norms low-ranks"},
    {"norm, gate and adapted up, geglu", record_adapted_up, "products products", "norms"},
    {"adapted products of two types", record_adapted_types, "products products", "low-ranks"},
    {"geglu and adapted product", record_geglu_adapted, "products", "geglu-kept"},
    {"norm, add and two norms", record_norms, "products products", "norms"},
    {"a norm that two steps read", record_norm_read_twice, "", ""},
};

static const rule_case tower_cases[] = {
    {"residual and norm of a tower", record_rows, "rows", "rows"},
    {"norm and rope of heads", record_heads, "heads", "heads"},
    {"clamp, geglu, clamp", record_gate, "gate", "gate"},
    {"attention and clamp", record_attend_clamp, "attend-clamp", "attend-clamp"},
    {"layer norm and relu", record_layer_norm_relu, "layer-norm-relu", "layer-norm-relu"},
    {"local attention", record_local_attend, "local-attend", "local-attend"},
};

static bool is_a_rule(const char *name, gpu_fusion_rules rules)
{
    for (size_t i = 0; i < rules.n; i++) {
        if (rules.rule[i].name == name) {
            return rules.rule[i].pattern[0] != 0;
        }
    }
    return false;
}

/* The rules of a list's groups, separated by spaces. */
static void list_rules(const gpu_lower_input *in, char *text, size_t n)
{
    gpu_fused f;
    text[0] = 0;
    if (!CHECK(gpu_fuse(in, &f, NULL) == BZ_OK)) {
        return;
    }
    for (uint32_t i = 0; i < f.n; i++) {
        if (f.groups[i].rule) {
            snprintf(text + strlen(text), n - strlen(text), "%s%s", *text ? " " : "",
                     f.groups[i].rule);
            CHECK(is_a_rule(f.groups[i].rule,
                            in->plan->tower ? gpu_tower_rules() : gpu_text_rules()));
        }
    }
    gpu_fused_free(&f);
}

static void test_rule(const rule_case *c, const gpu_weights *w, uint32_t rows, bool tower)
{
    bz_plan *plan = NULL;
    bz_error err = {0};
    begin("%s, %u rows", c->what, rows);
    if (!CHECK(bz_plan_new(&plan, &weights.table, &cache, 1, rows, rows, &err) == BZ_OK)) {
        return;
    }
    gpu_lower_input in = {.plan = plan,
                          .weights = &w->map,
                          .host_weights = (const uint8_t *const *)weights.bytes,
                          .limits = &large,
                          .packed = true};
    plan->tower = tower;
    CHECK(bz_plan_finish(plan, c->record(plan), &err) == BZ_OK);
    char got[256];
    list_rules(&in, got, sizeof got);
    CHECKF(!*got, "with fusing off: %s", got);
    const uint32_t unfused = check_lists(&in);
    in.fuse = true;
    list_rules(&in, got, sizeof got);
    const char *want = rows > 8 ? c->rules64 : c->rules8;
    CHECKF(strcmp(got, want) == 0, "rules \"%s\", not \"%s\"", got, want);
    CHECK(check_lists(&in) + (*want != 0) <= unfused);
    bz_plan_free(plan);
}

static void test_rules(void)
{
    gpu_weights w;
    begin("weights of the rules' plans are placed");
    if (!CHECK(gpu_weights_place(&w, &large, &weights.table, BZ_NO_WEIGHT, NULL) == BZ_OK)) {
        return;
    }
    for (size_t i = 0; i < sizeof rule_cases / sizeof *rule_cases; i++) {
        test_rule(&rule_cases[i], &w, 8, false);
        test_rule(&rule_cases[i], &w, 64, false);
    }
    for (size_t i = 0; i < sizeof tower_cases / sizeof *tower_cases; i++) {
        test_rule(&tower_cases[i], &w, 64, true);
    }
    gpu_weights_free(&w, NULL);
}

/* ---- pieces
 * -------------------------------------------------------------------------------------- */

/* A matrix larger than a binding: one dispatch per piece, and every output once. */
static void test_weight_pieces(uint32_t rows)
{
    begin("a matrix of several pieces, %u rows", rows);
    enum { OUTPUTS = 4096 };
    memory_weights mine = {0};
    const bz_weight ids = weights_random(&mine, BZ_F32, WIDTH, IDS, 1),
                    big = weights_random(&mine, BZ_F32, WIDTH, OUTPUTS, 1);
    gpu_limits small = large;
    small.max_binding = small.max_buffer = 600 * WIDTH * 4;
    small.max_workgroups = 64;
    if (rows > 8) { /* the arena must fit into one binding */
        small.max_binding = small.max_buffer = 2400 * WIDTH * 4;
    }
    gpu_weights w;
    bz_plan *plan = NULL;
    gpu_lowered l = {0};
    bool ok = CHECK(gpu_weights_place(&w, &small, &mine.table, BZ_NO_WEIGHT, NULL) == BZ_OK &&
                    bz_plan_new(&plan, &mine.table, NULL, 0, rows, rows, NULL) == BZ_OK);
    if (ok) {
        bz_tensor y = bz_linear(plan, bz_embed(plan, ids, 1, "x"), big, "y");
        const gpu_lower_input in = {
            .plan = plan, .weights = &w.map, .limits = &small, .fuse = true};
        ok = CHECK(bz_plan_finish(plan, y, NULL) == BZ_OK) &&
             CHECK(gpu_lower(&in, &l, NULL) == BZ_OK);
        check_lists(&in);
    }
    uint32_t next = 0, pieces = 0;
    for (uint32_t i = 0; i < l.n && ok; i++) {
        const gpu_dispatch *d = &l.dispatches[i];
        if (d->weights.kind == GPU_BOUND_WEIGHT && plan->steps[d->first_step].op == BZ_OP_LINEAR) {
            CHECKF(d->params.product.first_row == next, "piece begins at %u, not %u",
                   d->params.product.first_row, next);
            next += d->params.product.row_count;
            pieces++;
        }
    }
    CHECKF(next == OUTPUTS && pieces > 1, "%u outputs in %u pieces", next, pieces);
    gpu_lowered_free(&l);
    bz_plan_free(plan);
    gpu_weights_free(&w, NULL);
    weights_free(&mine);
}

/* A long cache: every piece is written and read, and the partial results are numbered through. */
static void test_cache_pieces(uint32_t rows)
{
    static const bz_cache_info growing = {.kv_heads = 1, .head_dim = HEAD, .window = 0};
    begin("a cache of several pieces, %u rows", rows);
    gpu_weights w;
    bz_plan *plan = NULL;
    gpu_lowered l = {0};
    if (!CHECK(gpu_weights_place(&w, &large, &weights.table, BZ_NO_WEIGHT, NULL) == BZ_OK) ||
        !CHECK(bz_plan_new(&plan, &weights.table, &growing, 1, rows, rows, NULL) == BZ_OK)) {
        return;
    }
    CHECK(bz_plan_finish(plan, record_attention(plan), NULL) == BZ_OK);
    const gpu_lower_input in = {.plan = plan, .weights = &w.map, .limits = &large, .fuse = true};
    if (CHECK(gpu_lower(&in, &l, NULL) == BZ_OK)) {
        const gpu_cache_shape shapes[] = {
            {.positions = 256, .piece_rows = 1024, .n_pieces = 1},
            {.positions = 2500, .piece_rows = 1000, .n_pieces = 3},
            {.positions = 16 + rows, .piece_rows = 1024, .n_pieces = 1, .ring = true}};
        for (int i = 0; i < 3; i++) {
            gpu_dispatch *list = NULL;
            uint32_t n = 0, binding = 0, parts = 0, combined = 0;
            uint64_t scratch = 0;
            CHECK(gpu_split_caches(&l, &shapes[i], large.max_binding, &list, &n, &scratch, NULL) ==
                  BZ_OK);
            for (uint32_t k = 0; k < n; k++) {
                const gpu_dispatch *d = &list[k];
                CHECK(!d->cache ||
                      d->params.attention.ring == (shapes[i].ring ? shapes[i].positions : 0));
                CHECK(!d->cache || shapes[i].ring ||
                      d->params.attention.first_row == d->cache_piece * shapes[i].piece_rows);
                binding += d->cache != 0;
                parts = d->cache && d->split.heads ? d->params.attention.parts : parts;
                combined += d->combines ? d->params.attention.parts : 0;
            }
            CHECKF(binding == 2 * shapes[i].n_pieces, "%u dispatches bind the cache", binding);
            CHECKF(combined == (parts > 1 ? parts : 0) && parts % shapes[i].n_pieces == 0,
                   "%u partial results, %u combined", parts, combined);
            CHECK(scratch >= (parts > 1 ? 4ull * rows * HEADS * parts * (HEAD + 4) : 0));
            free(list);
        }
    }
    gpu_lowered_free(&l);
    bz_plan_free(plan);
    gpu_weights_free(&w, NULL);
}

/* A product of few rows combines the parts of the attention that it reads, if they are few; else a
 * dispatch does. Attention has as many workgroups as there are parts. Where it is adapted, A
 * combines them. */
static void test_attention_parts(bool with_adapter)
{
    static const bz_cache_info growing = {.kv_heads = 1, .head_dim = HEAD, .window = 0};
    static const struct {
        gpu_cache_shape shape;
        uint32_t parts;
        bool by_product;
    } cases[] = {{{.positions = 100, .piece_rows = 4096, .n_pieces = 1}, 2, true},
                 {{.positions = 256, .piece_rows = 4096, .n_pieces = 1}, 4, true},
                 {{.positions = 1024, .piece_rows = 4096, .n_pieces = 1}, 8, true},
                 {{.positions = 2560, .piece_rows = 4096, .n_pieces = 1}, 10, false},
                 {{.positions = 2500, .piece_rows = 1000, .n_pieces = 3}, 24, false}};
    begin("parts of attention are combined by the product that reads them%s",
          with_adapter ? ", which is adapted" : "");
    gpu_weights w;
    bz_plan *plan = NULL;
    gpu_lowered l = {0};
    if (!CHECK(gpu_weights_place(&w, &large, &weights.table, BZ_NO_WEIGHT, NULL) == BZ_OK) ||
        !CHECK(bz_plan_new(&plan, &weights.table, &growing, 1, 1, 1, NULL) == BZ_OK)) {
        return;
    }
    bz_tensor q = bz_attend(plan, embedded(plan), (bz_cache){1}, HEADS, HEAD, 0, "attention");
    bz_tensor low = with_adapter ? bz_linear(plan, q, low_a, "low") : BZ_NO_TENSOR,
              y = bz_linear(plan, q, matrix, "y");
    y = with_adapter ? adapted(plan, y, low, 0) : y;
    CHECK(bz_plan_finish(plan, y, NULL) == BZ_OK);
    const gpu_lower_input in = {
        .plan = plan, .weights = &w.map, .limits = &large, .fuse = true, .packed = true};
    CHECK(gpu_lower(&in, &l, NULL) == BZ_OK);
    const gpu_dispatch *last = &l.dispatches[l.n - 1];
    CHECK(!with_adapter ||
          (last->rule && last->combines == 0 && last[-1].combines != 0 &&
           last[-1].params.fused_product.norm_out == last->params.fused_product.in0));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gpu_dispatch *list = NULL;
        uint32_t n = 0, written = 0, combines = 0, read = 0, groups = 0;
        uint64_t scratch = 0;
        CHECK(gpu_split_caches(&l, &cases[i].shape, large.max_binding, &list, &n, &scratch, NULL) ==
              BZ_OK);
        for (uint32_t k = 0; k < n; k++) {
            const gpu_dispatch *d = &list[k];
            combines += d->kernel == GPU_COMBINE;
            read += d->kernel == GPU_LINEAR8 ? d->params.fused_product.parts : 0;
            written = d->kernel == GPU_ATTEND_SPLIT ? d->params.attention.parts : written;
            groups += d->kernel == GPU_ATTEND_SPLIT ? d->x : 0;
        }
        CHECKF(written == cases[i].parts && groups == HEADS * written,
               "%u rows: %u parts, %u workgroups", cases[i].shape.positions, written, groups);
        CHECKF(combines == !cases[i].by_product && read == (cases[i].by_product ? written : 0),
               "%u rows: %u dispatches combine, the product %u parts", cases[i].shape.positions,
               combines, read);
        CHECK(scratch >= 4ull * HEADS * written * (HEAD + 4));
        free(list);
    }
    gpu_lowered_free(&l);
    bz_plan_free(plan);
    gpu_weights_free(&w, NULL);
}

static bool has_kernel(const gpu_lowered *l, gpu_kernel kernel)
{
    bool has = false;
    for (uint32_t i = 0; i < l->n; i++) {
        has = has || l->dispatches[i].kernel == kernel;
    }
    return has;
}

/* Rows of different sequences have nothing to share in attention, however many they are; with more
 * rows each is split less. Tiles of a few rows are not computed to their end. */
static void test_many_sequences(void)
{
    static const bz_cache_info growing = {.kv_heads = 1, .head_dim = HEAD, .window = 0};
    static const gpu_cache_shape shape = {.positions = 4096, .piece_rows = 1 << 20, .n_pieces = 1};
    uint32_t splits[2] = {0};
    begin("a pass of many sequences attends row by row");
    for (int many = 0; many < 4; many++) {
        const uint32_t rows = many & 1 ? 64 : 16;
        const bool sequences = many < 2;
        gpu_weights w;
        bz_plan *plan = NULL;
        gpu_lowered l = {0};
        gpu_dispatch *list = NULL;
        uint32_t n = 0;
        uint64_t scratch;
        if (!CHECK(gpu_weights_place(&w, &large, &weights.table, BZ_NO_WEIGHT, NULL) == BZ_OK) ||
            !CHECK(bz_plan_new(&plan, &weights.table, &growing, 1, rows, rows, NULL) == BZ_OK)) {
            return;
        }
        bz_tensor q = bz_attend(plan, embedded(plan), (bz_cache){1}, HEADS, HEAD, 0, "attention");
        CHECK(bz_plan_finish(plan, bz_linear(plan, q, matrix, "y"), NULL) == BZ_OK);
        plan->many_sequences = sequences;
        const gpu_lower_input in = {
            .plan = plan, .weights = &w.map, .limits = &large, .fuse = true, .packed = true};
        CHECK(gpu_lower(&in, &l, NULL) == BZ_OK);
        CHECK(has_kernel(&l, GPU_ATTEND_SPLIT) == sequences);
        CHECK(gpu_split_caches(&l, &shape, large.max_binding, &list, &n, &scratch, NULL) == BZ_OK);
        for (uint32_t i = 0; i < n; i++) {
            const gpu_dispatch *d = &list[i];
            if (d->kernel == GPU_ATTEND_SPLIT) {
                splits[many] = d->params.attention.splits;
                CHECK(d->y == rows && d->x == HEADS * splits[many]);
            }
            CHECK(d->kernel != GPU_LINEAR_TILE8 || d->overrides.value[0] == (rows == 16));
        }
        free(list);
        gpu_lowered_free(&l);
        bz_plan_free(plan);
        gpu_weights_free(&w, NULL);
    }
    CHECKF(splits[0] > splits[1] && splits[1] >= 2, "%u splits of 16 rows, %u of 64", splits[0],
           splits[1]);
}

/* The result of gate and up that only a product reads stays in the side buffer as int8. */
static void test_int8_result(void)
{
    begin("a product reads int8 where the one before has stored it");
    gpu_weights w;
    bz_plan *plan = NULL;
    gpu_lowered l = {0};
    if (!CHECK(gpu_weights_place(&w, &large, &weights.table, BZ_NO_WEIGHT, NULL) == BZ_OK) ||
        !CHECK(bz_plan_new(&plan, &weights.table, NULL, 0, 2, 2, NULL) == BZ_OK)) {
        return;
    }
    CHECK(bz_plan_finish(plan, bz_linear(plan, record_products(plan), matrix, "down"), NULL) ==
          BZ_OK);
    gpu_lower_input in = {
        .plan = plan, .weights = &w.map, .limits = &large, .fuse = true, .packed = true};
    CHECK(gpu_lower(&in, &l, NULL) == BZ_OK);
    const gpu_dispatch *gate = l.n > 1 ? &l.dispatches[l.n - 2] : NULL,
                       *down = l.n > 1 ? gate + 1 : NULL;
    CHECK(gate && gate->kernel == GPU_LINEAR8 && down->kernel == GPU_LINEAR8_STORED &&
          gate->params.out0 == down->params.in0 &&
          gate->params.out0_stride == down->params.in0_stride);
    /* 2 rows of WIDTH integers, then their scales */
    CHECK(gate && gate->params.out0_stride >= gate->params.out0 + 2 * WIDTH / 16 &&
          l.side_bytes >= 16ull * (gate->params.out0_stride + 2 * WIDTH / 32));
    gpu_lowered_free(&l);
    in.fuse = false;
    CHECK(gpu_lower(&in, &l, NULL) == BZ_OK);
    for (uint32_t i = 0; i < l.n; i++) {
        CHECK(l.dispatches[i].kernel != GPU_LINEAR8_STORED);
    }
    gpu_lowered_free(&l);
    bz_plan_free(plan);
    gpu_weights_free(&w, NULL);
}

/* ---- features of the device
 * ------------------------------------------------------------------------ */

/* Products take int8 activations only if allowed, and matrices only if offered and allowed. */
static void test_features(void)
{
    begin("kernels for int8 and for subgroup matrices");
    enum { ROWS = 512, WIDE = 1024 };
    memory_weights mine = {0};
    const bz_weight packed = weights_random(&mine, BZ_Q8_0, WIDE, WIDE, 1),
                    f16 = weights_random(&mine, BZ_F16, WIDE, WIDE, 1);
    gpu_weights w;
    CHECK(gpu_weights_place(&w, &large, &mine.table, BZ_NO_WEIGHT, NULL) == BZ_OK);
    for (int i = 0; i < 16; i++) {
        const uint32_t rows = i & 4 ? ROWS : 8;
        bz_plan *plan = NULL;
        gpu_lowered l;
        CHECK(bz_plan_new(&plan, &mine.table, NULL, 0, rows, rows, NULL) == BZ_OK);
        bz_tensor x = bz_input_rows(plan, WIDE, "x"),
                  y = bz_linear(plan, bz_linear(plan, x, packed, "a"), f16, "b");
        CHECK(bz_plan_finish(plan, y, NULL) == BZ_OK);
        const gpu_lower_input in = {.plan = plan,
                                    .weights = &w.map,
                                    .limits = &large,
                                    .packed = i & 1,
                                    .matrices = i & 2,
                                    .fuse = i & 8};
        if (CHECK(gpu_lower(&in, &l, NULL) == BZ_OK)) {
            const bool many = rows > 8;
            CHECK(has_kernel(&l, GPU_LINEAR_TILE8) == (in.packed && !in.matrices && many));
            CHECK(has_kernel(&l, GPU_LINEAR_TILE16) == (in.packed && in.matrices && many));
            CHECK(has_kernel(&l, GPU_TO_TILE16) == has_kernel(&l, GPU_LINEAR_TILE16));
            CHECK(has_kernel(&l, GPU_LINEAR_MATRIX) == (in.matrices && !in.packed && many));
            CHECK(has_kernel(&l, GPU_TO_F16) == has_kernel(&l, GPU_LINEAR_MATRIX));
            gpu_lowered_free(&l);
        }
        bz_plan_free(plan);
    }
    gpu_weights_free(&w, NULL);
    weights_free(&mine);
}

/* A software adapter: f32 products without workgroup memory, whatever is allowed; norms and
 * attention with few threads, and attention without parts. */
static void test_sequential(void)
{
    static const bz_cache_info growing = {.kv_heads = 1, .head_dim = WIDTH, .window = 0};
    static const gpu_cache_shape shape = {.positions = 4096, .piece_rows = 1 << 20, .n_pieces = 1};
    begin("kernels for threads that run one after the other");
    gpu_weights w;
    CHECK(gpu_weights_place(&w, &large, &weights.table, BZ_NO_WEIGHT, NULL) == BZ_OK);
    for (int i = 0; i < 8; i++) {
        const bool sequential = i & 1, q4 = i & 4;
        const uint32_t rows = i & 2 ? 64 : 1;
        const gpu_limits limits = sequential ? software() : large;
        bz_plan *plan = NULL;
        gpu_lowered l = {0};
        gpu_dispatch *list = NULL;
        uint32_t n = 0, threads = 0, parts = 0, combines = 0;
        uint64_t scratch;
        CHECK(bz_plan_new(&plan, &weights.table, &growing, 1, rows, rows, NULL) == BZ_OK);
        bz_tensor q =
            bz_attend(plan, norm(plan, embedded(plan)), (bz_cache){1}, 1, WIDTH, 0, "attention");
        CHECK(bz_plan_finish(plan, bz_linear(plan, q, matrix, "y"), NULL) == BZ_OK);
        const gpu_lower_input in = {.plan = plan,
                                    .weights = &w.map,
                                    .limits = &limits,
                                    .fuse = true,
                                    .packed = true,
                                    .matrices = limits.matrices,
                                    .cache = q4 ? BZ_CACHE_Q4 : BZ_CACHE_F16};
        if (CHECK(gpu_lower(&in, &l, NULL) == BZ_OK &&
                  gpu_split_caches(&l, &shape, limits.max_binding, &list, &n, &scratch, NULL) ==
                      BZ_OK)) {
            CHECK(has_kernel(&l, GPU_LINEAR_EACH) == sequential);
            CHECK((has_kernel(&l, GPU_LINEAR8) || has_kernel(&l, GPU_LINEAR_TILE8) ||
                   has_kernel(&l, GPU_QUANTIZE)) == !sequential);
            for (uint32_t d = 0; d < n; d++) {
                threads = list[d].kernel == GPU_NORM ? list[d].overrides.value[4] : threads;
                parts = list[d].cache ? list[d].params.attention.parts : parts;
                combines += list[d].kernel == GPU_COMBINE;
            }
            CHECKF(sequential ? threads == 16 : threads == 256 || !threads, "%u threads", threads);
            /* results of attention over a cache in Q4 are rotated by the combining dispatch */
            const bool whole = sequential && !(q4 && rows == 1);
            CHECKF((parts == 1) == whole && combines <= !whole, "%u parts", parts);
        }
        free(list);
        gpu_lowered_free(&l);
        bz_plan_free(plan);
    }
    gpu_weights_free(&w, NULL);
}

static void test_errors(void)
{
    begin("a plan that cannot be lowered is refused and leaks nothing");
    memory_weights mine = {0};
    const bz_weight ids = weights_random(&mine, BZ_F32, 2048, IDS, 1);
    gpu_weights w;
    bz_plan *plan = NULL;
    gpu_lowered l;
    bz_error err = {0};
    CHECK(gpu_weights_place(&w, &large, &mine.table, BZ_NO_WEIGHT, NULL) == BZ_OK &&
          bz_plan_new(&plan, &mine.table, NULL, 0, 1, 1, NULL) == BZ_OK);
    bz_tensor chosen, shares;
    bz_route(plan, bz_embed(plan, ids, 1, "x"), 4, &chosen, &shares, "route");
    CHECK(bz_plan_finish(plan, shares, NULL) == BZ_OK);
    const gpu_lower_input in = {.plan = plan, .weights = &w.map, .limits = &large, .fuse = true};
    CHECKF(gpu_lower(&in, &l, &err) == BZ_UNSUPPORTED_MODEL && strstr(err.text, "of 2048 experts"),
           "%s", err.text);
    CHECK(!l.dispatches && !l.offset && l.n == 0);
    bz_plan_free(plan);
    gpu_weights_free(&w, NULL);
    weights_free(&mine);
}

int main(void)
{
    random_seed_or(20261116);
    table = weights_random(&weights, BZ_F32, WIDTH, IDS, 1);
    row_norm = weights_random(&weights, BZ_F32, WIDTH, 1, 1);
    head_norm = weights_random(&weights, BZ_F32, HEAD, 1, 1);
    scalar = weights_values(&weights, (float[]){0.5f}, 1, 1);
    matrix = weights_random(&weights, BZ_Q8_0, WIDTH, WIDTH, 1);
    matrix2 = weights_random(&weights, BZ_Q8_0, WIDTH, WIDTH, 1);
    matrix_q4 = weights_random(&weights, BZ_Q4_0, WIDTH, WIDTH, 1);
    tower_matrix = weights_random(&weights, BZ_F32, WIDTH, WIDTH, 1);
    low_a = weights_random(&weights, BZ_F32, WIDTH, 8, 1);
    low_b = weights_random(&weights, BZ_F32, BZ_LOW_RANK_PANEL, 4, WIDTH / BZ_LOW_RANK_PANEL);

    test_text("tiny-e-q4_k_m",
              (counts[]){{1, 78, 209}, {8, 78, 209}, {64, 152, 314}, {512, 152, 280}});
    test_text("tiny-moe-q4_k_m",
              (counts[]){{1, 96, 213}, {8, 96, 213}, {64, 134, 301}, {512, 134, 273}});
    test_text("tiny-dense-q6_k",
              (counts[]){{1, 46, 141}, {8, 46, 141}, {64, 86, 205}, {512, 86, 183}});
    test_adapted("tiny-e-q4_k_m");
    test_adapted("tiny-moe-q4_k_m");
    test_canvas();
    test_towers();
    test_rules();
    test_weight_pieces(1);
    test_weight_pieces(16);
    test_cache_pieces(1);
    test_cache_pieces(64);
    test_attention_parts(false);
    test_attention_parts(true);
    test_many_sequences();
    test_int8_result();
    test_features();
    test_sequential();
    test_errors();
    weights_free(&weights);
    return finish();
}
