/* Adapters on the GPU: the kernel against the CPU's step, Hugging Face's logits, and what fusion
 * makes of adapted plans. */
#include <stdlib.h>
#include <string.h>

#include "bezel_batch.h"
#include "gpu/device/test_hooks.h"
#include "session/model.h"
#include "support/check.h"
#include "support/devices.h"
#include "support/forward.h"
#include "support/lora.h"
#include "support/parity.h"
#include "support/random.h"

/* ---- the kernel ------------------------------------------------------------------------- */

enum { IDS = 70, EXPERTS = 5, SLOTS = 2 };

static const uint32_t rows[3][2] = {{1, 1}, {8, 5}, {64, 33}};
static const bound close_to = {.of_rms = 1e-6, .of_value = 1e-6};

static uint32_t panels_of(uint32_t cols)
{
    return (cols + BZ_LOW_RANK_PANEL - 1) / BZ_LOW_RANK_PANEL;
}

static void test_kernel(void)
{
    static const uint32_t cols[] = {1, 16, 17, 1000}, ranks[] = {1, 3, 70};
    begin("add_low_rank, odd sizes");
    memory_weights w = {0};
    bz_weight x = weights_random(&w, BZ_F32, 1000, IDS, 1),
              y = weights_random(&w, BZ_F32, 70, IDS, 1);
    bz_weight b[4][3];
    for (int i = 0; i < 12; i++) {
        b[i / 3][i % 3] =
            weights_random(&w, BZ_F32, BZ_LOW_RANK_PANEL, ranks[i % 3], panels_of(cols[i / 3]));
    }
    parity p;
    const bool open = parity_open(&p, &w, &(parity_options){0});
    for (int i = 0; open && i < 36; i++) {
        const uint32_t n = cols[i / 9], r = ranks[i / 3 % 3], bucket = rows[i % 3][0];
        bz_plan *plan = parity_plan(&p, bucket);
        bz_tensor a = bz_columns(plan, bz_embed(plan, x, 1, "x"), 1000 - n, n),
                  low = bz_columns(plan, bz_embed(plan, y, 1, "y"), 70 - r, r);
        parity_run run = parity_prepare(
            &p, plan,
            bz_add_low_rank(plan, a, low, BZ_NO_TENSOR, b[i / 9][i / 3 % 3], 1, -0.7f, "out"));
        parity_check(&p, &run, &(parity_pass){.n = rows[i % 3][1]}, close_to,
                     "%u columns, rank %u, %u rows", n, r, rows[i % 3][1]);
        parity_release(&p, &run);
    }
    parity_close(&p);
    weights_free(&w);
}

static void test_experts(void)
{
    enum { COLS = 40, RANK = 3 };
    begin("add_low_rank, experts");
    memory_weights w = {0};
    bz_weight logits = weights_random(&w, BZ_F32, EXPERTS, IDS, 1),
              x = weights_random(&w, BZ_F32, SLOTS * COLS, IDS, 1),
              y = weights_random(&w, BZ_F32, SLOTS * RANK, IDS, 1),
              b = weights_random(&w, BZ_F32, BZ_LOW_RANK_PANEL, RANK, EXPERTS * panels_of(COLS));
    parity p;
    const bool open = parity_open(&p, &w, &(parity_options){0});
    for (int i = 0; open && i < 3; i++) {
        bz_plan *plan = parity_plan(&p, rows[i][0]);
        bz_tensor ids, shares;
        bz_route(plan, bz_embed(plan, logits, 3, "logits"), SLOTS, &ids, &shares, "route");
        parity_run run =
            parity_prepare(&p, plan,
                           bz_add_low_rank(plan, bz_embed(plan, x, 1, "x"),
                                           bz_embed(plan, y, 1, "y"), ids, b, SLOTS, 0.3f, "out"));
        parity_check(&p, &run, &(parity_pass){.n = rows[i][1]}, close_to, "%u rows", rows[i][1]);
        parity_release(&p, &run);
    }
    parity_close(&p);
    weights_free(&w);
}

/* ---- with products -----------------------------------------------------------------------------
 */

/* Matrices of a plan of one pattern, whose input int8 holds exactly (weights_exact8). */
enum { K = 256, OUTS = 80, FFN = 64, WIDE_IDS = 40 };

typedef struct matrices {
    bz_weight table, norm, residual;
    bz_weight q, k, v, a, bq, bk, bv; /* a: 4 values for q, then 72 for v */
    bz_weight gate, up, down, a2, bgate, bup, a3, bdown;
    bz_weight experts, a4, bexperts, logits;
} matrices;

static bz_tensor low_rank(bz_plan *p, bz_tensor y, bz_tensor low, uint32_t first, uint32_t rank,
                          bz_weight b, float scale)
{
    return bz_add_low_rank(p, y, bz_columns(p, low, first, rank), BZ_NO_TENSOR, b, 1, scale, "y");
}

/* Three products of one input, of which the first and the third are adapted. */
static bz_tensor three(bz_plan *p, const matrices *m, bz_tensor x)
{
    bz_tensor low = bz_linear(p, x, m->a, "low"), q = bz_linear(p, x, m->q, "q"),
              k = bz_linear(p, x, m->k, "k"), v = bz_linear(p, x, m->v, "v");
    q = low_rank(p, q, low, 0, 4, m->bq, 0.7f);
    v = low_rank(p, v, low, 4, 72, m->bv, -0.3f);
    return bz_concat(p, bz_concat(p, q, k, "qk"), v, "qkv");
}

static bz_tensor plain_input(bz_plan *p, const matrices *m)
{
    return three(p, m, bz_embed(p, m->table, 1, "x"));
}

static bz_tensor normed_input(bz_plan *p, const matrices *m)
{
    bz_tensor x = bz_embed(p, m->table, 1, "x"), r = bz_embed(p, m->residual, 1, "r");
    x = bz_add(p, r, bz_rms_norm(p, x, m->norm, K, 1e-6f, "norm"), 1, "sum");
    bz_tensor y = three(p, m, bz_rms_norm(p, x, m->norm, K, 1e-6f, "norm"));
    return bz_concat(p, y, x, "and_sum");
}

/* Gate and up, of which one is adapted, or both, and what follows. */
static bz_tensor feed_forward(bz_plan *p, const matrices *m, bool both)
{
    bz_tensor x = bz_embed(p, m->table, 1, "x"), low = bz_linear(p, x, m->a2, "low"),
              gate = bz_linear(p, x, m->gate, "gate"), up = bz_linear(p, x, m->up, "up");
    gate = both ? low_rank(p, gate, low, 0, 8, m->bgate, 0.5f) : gate;
    up = low_rank(p, up, low, 8, 8, m->bup, 0.5f);
    bz_tensor act = bz_geglu(p, gate, up, "act");
    low = bz_linear(p, act, m->a3, "low");
    return low_rank(p, bz_linear(p, act, m->down, "down"), low, 0, 16, m->bdown, 0.5f);
}

static bz_tensor feed_forward_both(bz_plan *p, const matrices *m)
{
    return feed_forward(p, m, true);
}

static bz_tensor feed_forward_up(bz_plan *p, const matrices *m)
{
    return feed_forward(p, m, false);
}

static bz_tensor capped(bz_plan *p, const matrices *m)
{
    bz_tensor x = bz_embed(p, m->table, 1, "x"), low = bz_linear(p, x, m->a, "low");
    return bz_softcap(p, low_rank(p, bz_linear(p, x, m->q, "q"), low, 0, 4, m->bq, 2), 30, "y");
}

/* So small an A that each workgroup of the product computes it. */
static bz_tensor small(bz_plan *p, const matrices *m)
{
    bz_tensor x = bz_embed(p, m->table, 1, "x"), low = bz_linear(p, x, m->a2, "low");
    bz_tensor q = bz_linear(p, x, m->q, "q"), k = bz_linear(p, x, m->k, "k");
    q = low_rank(p, q, low, 0, 4, m->bq, -1.5f);
    k = low_rank(p, k, low, 4, 12, m->bk, 0.7f);
    return bz_concat(p, q, k, "qk");
}

/* Gates and ups of experts in one matrix. */
static bz_tensor of_experts(bz_plan *p, const matrices *m)
{
    bz_tensor x = bz_embed(p, m->table, 1, "x"), ids, shares;
    bz_route(p, bz_embed(p, m->logits, 3, "logits"), SLOTS, &ids, &shares, "route");
    bz_tensor low = bz_expert_linear(p, x, ids, m->a4, SLOTS, "low"),
              y = bz_expert_linear(p, x, ids, m->experts, SLOTS, "y");
    y = bz_add_low_rank(p, y, low, ids, m->bexperts, SLOTS, 0.4f, "y");
    return bz_geglu_fused(p, y, FFN, "act");
}

static matrices random_matrices(memory_weights *w)
{
    const uint32_t panel = BZ_LOW_RANK_PANEL;
    return (matrices){.table = weights_exact8(w, K, WIDE_IDS),
                      .norm = weights_random(w, BZ_F32, K, 1, 1),
                      .residual = weights_random(w, BZ_F32, K, WIDE_IDS, 1),
                      .q = weights_random(w, BZ_Q4_K, K, OUTS, 1),
                      .k = weights_random(w, BZ_Q4_K, K, OUTS, 1),
                      .v = weights_random(w, BZ_Q4_K, K, OUTS, 1),
                      .a = weights_random(w, BZ_F32, K, 76, 1),
                      .bq = weights_random(w, BZ_F32, panel, 4, panels_of(OUTS)),
                      .bk = weights_random(w, BZ_F32, panel, 12, panels_of(OUTS)),
                      .bv = weights_random(w, BZ_F32, panel, 72, panels_of(OUTS)),
                      .gate = weights_random(w, BZ_Q8_0, K, FFN, 1),
                      .up = weights_random(w, BZ_Q8_0, K, FFN, 1),
                      .down = weights_random(w, BZ_Q8_0, FFN, OUTS, 1),
                      .a2 = weights_random(w, BZ_F32, K, 16, 1),
                      .bgate = weights_random(w, BZ_F32, panel, 8, panels_of(FFN)),
                      .bup = weights_random(w, BZ_F32, panel, 8, panels_of(FFN)),
                      .a3 = weights_random(w, BZ_F32, FFN, 16, 1),
                      .bdown = weights_random(w, BZ_F32, panel, 16, panels_of(OUTS)),
                      .experts = weights_random(w, BZ_Q8_0, K, 2 * FFN, EXPERTS),
                      .a4 = weights_random(w, BZ_F32, K, 4, EXPERTS),
                      .bexperts = weights_random(w, BZ_F32, panel, 4, EXPERTS * panels_of(2 * FFN)),
                      .logits = weights_random(w, BZ_F32, EXPERTS, WIDE_IDS, 1)};
}

/* Fused and unfused against the CPU; loosely where a kernel rounds what it computed to int8. */
static void test_products(void)
{
    static const struct {
        const char *what;
        bz_tensor (*record)(bz_plan *p, const matrices *m);
        double of_rms;
    } cases[] = {{"three products", plain_input, 1e-5},
                 {"residual, norm, three products", normed_input, 0.06},
                 {"gate, up, down", feed_forward_both, 0.06},
                 {"gate, adapted up, down", feed_forward_up, 0.06},
                 {"product and softcap", capped, 1e-5},
                 {"two products, a small A", small, 1e-5},
                 {"experts", of_experts, 1e-4}};
    memory_weights w = {0};
    const matrices m = random_matrices(&w);
    static const char *const how[] = {"fused", "unfused", "on the baseline device"};
    for (int h = 0; h < 3; h++) {
        parity p;
        begin("adapted products, %s", how[h]);
        const bool open = parity_open(
            &p, &w, &(parity_options){.no_fuse = h == 1, .device = {.baseline = h == 2}});
        for (size_t i = 0; open && i < 3 * sizeof cases / sizeof *cases; i++) {
            bz_plan *plan = parity_plan(&p, rows[i % 3][0]);
            parity_run run = parity_prepare(&p, plan, cases[i / 3].record(plan, &m));
            parity_check(&p, &run, &(parity_pass){.n = rows[i % 3][1]},
                         (bound){.of_rms = cases[i / 3].of_rms}, "%s, %u rows", cases[i / 3].what,
                         rows[i % 3][1]);
            parity_release(&p, &run);
        }
        parity_close(&p);
    }
    weights_free(&w);
}

/* ---- fused ---------------------------------------------------------------------------------- */

enum { TOKENS = 10 };

static float *logits_of(const bz_model *m, bz_adapter *a, uint32_t chunk, bool no_fuse)
{
    const bz_session_options o = {
        .size = sizeof o, .chunk = chunk, .no_fuse = no_fuse, .context = 64};
    bz_session *s = session_or_fail(m, &o);
    float *out = calloc((size_t)TOKENS * bz_model_vocab(m), sizeof *out);
    bz_error err = {0};
    int32_t ids[TOKENS];
    for (int i = 0; i < TOKENS; i++) {
        ids[i] = 600 + 7 * i;
    }
    CHECKF(bz_session_set_adapters(s, &(bz_adapter_use){a, 1}, a != NULL, &err) == BZ_OK &&
               prefill(s, ids, TOKENS, 0, out, &err) == BZ_OK,
           "%s", err.text);
    bz_session_free(s);
    return out;
}

/* int8 activations: what two kernels round differently grows from layer to layer, with adapters as
 * without. They change logits by several times the bound. */
static void test_fused(const char *name)
{
    golden file;
    gguf_build g;
    golden_open(&file, model_path(name));
    bz_model *m = open_on_or_fail(model_path(name), "gpu"), *cpu = open_or_fail(model_path(name));
    lora_begin(&g, "gemma4", 4);
    lora_all(&g, &file.gguf);
    gb_finish(&g);
    bz_adapter *a = built_adapter_or_fail(m, &g), *b = built_adapter_or_fail(cpu, &g);
    const size_t n = (size_t)TOKENS * bz_model_vocab(m);
    float *want = logits_of(cpu, b, 512, false), *plain = logits_of(cpu, NULL, 512, false);
    for (int one = 0; one < 2; one++) {
        begin("%s with every matrix adapted, fused = unfused, %s", name,
              one ? "row by row" : "in one pass");
        float *x = logits_of(m, a, one ? 1 : 512, false), *y = logits_of(m, a, one ? 1 : 512, true);
        within(x, y, TOKENS, n / TOKENS, (bound){.of_rms = 0.2}, "fused");
        within(x, want, TOKENS, n / TOKENS, (bound){.of_rms = 0.5}, "the CPU");
        CHECK(max_difference(want, plain, n) > 10);
        free(x);
        free(y);
    }
    free(want);
    free(plain);
    bz_adapter_free(a);
    bz_adapter_free(b);
    bz_model_free(m);
    bz_model_free(cpu);
    gb_free(&g);
    golden_close(&file);
}

/* ---- batches, lost devices ------------------------------------------------------------------ */

enum { ANSWER = 6 };

static const int32_t prompt[4] = {2, 600, 607, 614};

typedef struct made {
    int32_t ids[ANSWER];
    size_t n;
} made;

static int on_token(void *user, const bz_event *e)
{
    made *a = user;
    if (e->kind == BZ_EVENT_TOKEN && a->n < ANSWER) {
        a->ids[a->n++] = e->token;
    }
    return 0;
}

static void on_event(void *user, const bz_batch_event *e)
{
    made *a = user;
    CHECKF(e->error.code == BZ_OK, "%s", e->error.text);
    if (e->token >= 0 && a->n < ANSWER) {
        a->ids[a->n++] = e->token;
    }
}

static made answer_of(const bz_model *m, bz_adapter *a, bool lose)
{
    const bz_session_options o = {.size = sizeof o, .exact = true, .context = 64};
    const bz_generate_options go = {
        .size = sizeof go, .max_tokens = ANSWER, .ignore_end = true, .sampling.greedy = true};
    bz_session *s = session_or_fail(m, &o);
    bz_job *job = NULL;
    bz_error err = {0};
    made got = {.n = 0};
    CHECK(bz_session_set_adapters(s, &(bz_adapter_use){a, 2}, a != NULL, &err) == BZ_OK);
    CHECKF(prefill(s, prompt, 4, 0, NULL, &err) == BZ_OK, "%s", err.text);
    if (lose) {
        gpu_test_lose(bz_model_device(m));
    }
    const bz_host host = {.size = sizeof host, .event = on_token, .user = &got};
    CHECK(bz_session_generate(s, &go, &job, &err) == BZ_OK);
    CHECKF(bz_job_run(job, &host, &err) == BZ_OK, "%s", err.text);
    bz_job_free(job);
    bz_session_free(s);
    return got;
}

static made batch_answer_of(bz_batch *b, bz_adapter *a)
{
    const bz_generate_options go = {
        .size = sizeof go, .max_tokens = ANSWER, .ignore_end = true, .sampling.greedy = true};
    bz_error err = {0};
    uint32_t slot;
    made got = {.n = 0};
    CHECKF(bz_batch_set_adapters(b, &(bz_adapter_use){a, 2}, a != NULL, &err) == BZ_OK, "%s",
           err.text);
    CHECKF(bz_batch_start(b, prompt, 4, &go, &slot, &err) == BZ_OK, "%s", err.text);
    while (got.n < ANSWER &&
           CHECKF(bz_batch_step(b, on_event, &got, &err) == BZ_OK, "%s", err.text)) {
    }
    return got;
}

static void test_devices(void)
{
    begin("answers of sessions and of a batch, on a lost device, too");
    bz_model *m = open_on_or_fail(golden_path("dense-like/text.gguf"), "gpu");
    bz_adapter *a = adapter_or_fail(m, golden_path("lora/dense_a.gguf"));
    const bz_batch_options bo = {.size = sizeof bo, .slots = 2, .context = 64, .exact = true};
    bz_batch *b = NULL;
    bz_error err = {0};
    CHECKF(bz_batch_new(&b, m, &bo, &err) == BZ_OK, "%s", err.text);
    const made plain = answer_of(m, NULL, false), adapted = answer_of(m, a, false);
    CHECK(plain.n == ANSWER && adapted.n == ANSWER &&
          memcmp(plain.ids, adapted.ids, sizeof plain.ids) != 0);
    for (int i = quick_run() ? 1 : 0; i < 3; i++) {
        const made got = batch_answer_of(b, i == 1 ? a : NULL);
        CHECK(memcmp(got.ids, i == 1 ? adapted.ids : plain.ids, sizeof got.ids) == 0);
    }
    const made lost = answer_of(m, a, true);
    CHECK(memcmp(lost.ids, adapted.ids, sizeof lost.ids) == 0);
    const made after = batch_answer_of(b, a);
    CHECK(memcmp(after.ids, adapted.ids, sizeof after.ids) == 0);
    bz_batch_free(b);
    bz_adapter_free(a);
    bz_model_free(m);
}

int main(void)
{
    static const uint32_t chunks[] = {1, 7, 512};
    devices_keep();
    random_seed(9);
    test_kernel();
    test_experts();
    test_products();
    test_fused("tiny-e-q4_k_m.gguf");
    test_devices();
    for (size_t i = quick_run() ? 2 : 0; i < 3; i++) {
        const bz_session_options o = {.size = sizeof o, .exact = true, .chunk = chunks[i]};
        if (!quick_run()) { /* the other model has all of its products, too */
            check_lora("dense", "gpu", &o, 1e-3);
        }
        check_lora("moe", "gpu", &o, 1e-3);
    }
    check_lora("moe", "gpu-baseline",
               &(bz_session_options){.size = sizeof(bz_session_options), .exact = true, .chunk = 7},
               1e-3);
    return finish();
}
