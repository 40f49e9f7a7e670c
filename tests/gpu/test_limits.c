/* Tensors of many bindings and buffers, and dispatches of more workgroups than one dimension
 * allows: at small size with overridden limits, and once at full size.
 *
 *   sh tools/gpu-env.sh build/tests/gpu/test_limits [part of a case's name]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/run/internal.h"
#include "support/check.h"
#include "support/devices.h"
#include "support/golden.h"
#include "support/parity.h"
#include "support/random.h"

static gpu_limits real, limits; /* what there is, and what the device pretends */
static const char *wanted = "";

static bool starts(const char *name)
{
    limits = real;
    if (!strstr(name, wanted)) {
        return false;
    }
    begin("%s", name);
    return true;
}

static void set_limits(uint64_t binding, uint64_t buffer, uint32_t workgroups)
{
    limits.max_binding = binding;
    limits.max_buffer = buffer;
    limits.max_workgroups = workgroups;
}

/* Where weights are integers, activations that 8 bits hold exactly. */
static bz_weight inputs_for(memory_weights *w, bz_type type, uint64_t k, uint64_t n)
{
    return bz_type_of((uint32_t)type)->block_values > 1 ? weights_exact8(w, k, n)
                                                        : weights_random(w, BZ_F32, k, n, 1);
}

static bound sum_of(uint64_t k)
{
    return (bound){.of_rms = 4e-6 + 2.5e-7 * sqrt((double)k)};
}

/* ---- products ------------------------------------------------------------------------------ */

static const uint32_t rows[][2] = {{1, 1}, {8, 5}, {16, 11}};

static void check_product(parity *p, bz_weight x, bz_weight m, const char *what)
{
    for (int c = 0; c < 3; c++) {
        bz_plan *plan = parity_plan(p, rows[c][0]);
        parity_run r = parity_prepare(p, plan, bz_linear(plan, bz_embed(plan, x, 1, "x"), m, "y"));
        uint64_t before = gpu_counts_of(p->device).dispatches;
        parity_check(p, &r, &(parity_pass){.n = rows[c][1]},
                     sum_of(p->weights->table.info[m.id - 1].ne[0]), "%s, %u rows", what,
                     rows[c][1]);
        CHECKF(gpu_counts_of(p->device).dispatches - before > 4, "%s: all in one binding", what);
        parity_release(p, &r);
    }
}

static void test_products(bz_type type, uint64_t k, uint64_t outputs)
{
    char name[100];
    snprintf(name, sizeof name, "a %s matrix of many bindings, %d outputs",
             bz_type_of((uint32_t)type)->name, (int)outputs);
    if (!starts(name)) {
        return;
    }
    memory_weights w = {0};
    bz_weight x = inputs_for(&w, type, k, 20), m = weights_random(&w, type, k, outputs, 1);
    uint64_t row = bz_row_bytes(type, k), activations = 4 * (k + 2 * outputs + 64) * 16;
    /* bindings of a fifth of the matrix or less, two or three to a buffer; the activations have to
     * fit */
    uint64_t binding = row * outputs / 5 > activations ? row * outputs / 5 : activations;
    CHECK(binding < row * outputs / 3);
    /* (where a type is repacked as it is loaded, that needs a large buffer) */
    set_limits(binding, type == BZ_Q6_K ? real.max_buffer : binding * 5 / 2, real.max_workgroups);
    parity p;
    if (parity_open(&p, &w, &(parity_options){.limits = &limits})) {
        check_product(&p, x, m, "product");
    }
    parity_close(&p);
    weights_free(&w);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void test_table(bz_type type)
{
    enum { ROWS = 1000, K = 256 };
    char name[100];
    snprintf(name, sizeof name, "a %s table of many bindings, rows at the borders",
             bz_type_of((uint32_t)type)->name);
    if (!starts(name)) {
        return;
    }
    memory_weights w = {0};
    bz_weight table = weights_random(&w, type, K, ROWS, 1);
    uint64_t row = bz_row_bytes(type, K);
    set_limits(row * 101 + 256 > 64 * K * 4 * 3 ? row * 101 + 256 : 64 * K * 4 * 3,
               type == BZ_Q6_K ? real.max_buffer : 1 << 18, real.max_workgroups);
    parity p;
    bool open = parity_open(&p, &w, &(parity_options){.limits = &limits});
    bz_plan *plan = open ? parity_plan(&p, 64) : NULL;
    parity_run r = open ? parity_prepare(&p, plan, bz_embed(plan, table, 2, "y")) : (parity_run){0};
    for (int32_t first = 0; open && first < ROWS; first += 50) { /* every row once: every border */
        int32_t ids[50];
        for (int32_t i = 0; i < 50; i++) {
            ids[i] = (first + i * 7) % ROWS;
        }
        parity_check(&p, &r, &(parity_pass){.n = 50, .ids = ids}, (bound){.of_rms = 3e-7},
                     "from %d", (int)first);
    }
    parity_release(&p, &r);
    parity_close(&p);
    weights_free(&w);
}

/* ---- experts -----------------------------------------------------------------------------------
 */

static void test_experts(bz_type type, uint32_t k, uint32_t outputs)
{
    enum { EXPERTS = 11, SLOTS = 3, IDS = 20 };
    char name[100];
    snprintf(name, sizeof name, "%s experts of many bindings, %u outputs",
             bz_type_of((uint32_t)type)->name, outputs);
    if (!starts(name)) {
        return;
    }
    memory_weights w = {0};
    bz_weight x = inputs_for(&w, type, k, IDS),
              logits = weights_random(&w, BZ_F32, EXPERTS, IDS, 1);
    bz_weight m = weights_random(&w, type, k, outputs, EXPERTS);
    set_limits(400000, 1000000, real.max_workgroups);
    CHECK(bz_row_bytes(type, k) * outputs * EXPERTS > 4 * 400000);
    parity p;
    bool open = parity_open(&p, &w, &(parity_options){.limits = &limits});
    for (int c = 0; open && c < 3; c++) {
        bz_plan *plan = parity_plan(&p, rows[c][0]);
        bz_tensor ids, shares;
        bz_route(plan, bz_embed(plan, logits, 1, "logits"), SLOTS, &ids, &shares, "route");
        parity_run r = parity_prepare(
            &p, plan, bz_expert_linear(plan, bz_embed(plan, x, 1, "x"), ids, m, SLOTS, "y"));
        parity_check(&p, &r, &(parity_pass){.n = rows[c][1]}, sum_of(k), "%u rows", rows[c][1]);
        parity_release(&p, &r);
    }
    parity_close(&p);
    weights_free(&w);
}

/* ---- caches
 * -------------------------------------------------------------------------------------- */

enum { KV_HEADS = 8, CACHE_IDS = 30 };

/* The steps of a layer between its products, so that the fused kernels run as well. */
static bz_tensor attention(bz_plan *plan, bz_weight x, bz_weight norm, uint32_t width)
{
    const uint32_t n = KV_HEADS * width;
    bz_tensor angles = bz_rope_table(plan, BZ_NO_WEIGHT, width, width / 2, 10000, "angles");
    bz_tensor in = bz_embed(plan, x, 1, "qkv");
    bz_tensor k = bz_rms_norm(plan, bz_columns(plan, in, 0, n), norm, width, 1e-6f, "k");
    k = bz_rope(plan, k, angles, width, "k");
    bz_tensor v = bz_rms_norm(plan, bz_columns(plan, in, n, n), BZ_NO_WEIGHT, width, 1e-6f, "v");
    bz_kv_write(plan, k, v, (bz_cache){1}, "write");
    bz_tensor q = bz_rms_norm(plan, bz_columns(plan, in, 2 * n, n), norm, width, 1e-6f, "q");
    return bz_attend(plan, bz_rope(plan, q, angles, width, "q"), (bz_cache){1}, KV_HEADS, width, 0,
                     "y");
}

static void test_cache(uint32_t width, bz_cache_type type, bool fused, uint32_t until)
{
    char name[120];
    snprintf(name, sizeof name, "a cache of many bindings, heads of %u in %s%s, %u positions",
             width, bz_cache_type_name(type), fused ? "" : ", not fused", until);
    if (!starts(name)) {
        return;
    }
    memory_weights w = {0};
    bz_weight x = weights_random(&w, BZ_F32, 3 * KV_HEADS * width, CACHE_IDS, 1),
              norm = weights_random(&w, BZ_F32, width, 1, 1);
    const bz_cache_info cache = {.kv_heads = KV_HEADS, .head_dim = width};
    /* rows with heads of 256: 305 of f32, 610 of f16, 1148 of q8, 2170 of q4 */
    set_limits(2500000, real.max_buffer, real.max_workgroups);
    parity p;
    bool open = parity_open(&p, &w,
                            &(parity_options){.limits = &limits,
                                              .f32_cache = type == BZ_CACHE_F32,
                                              .cache = type,
                                              .no_fuse = !fused,
                                              .caches = &cache,
                                              .n_caches = 1});
    parity_run runs[2] = {{0}};
    for (int i = 0; open && i < 2; i++) {
        bz_plan *plan = parity_plan(&p, i ? 16 : 1);
        runs[i] = parity_prepare(&p, plan, attention(plan, x, norm, width));
    }
    /* near the middle between two f16, the last bit of a key decides which it becomes */
    const bound limit = {.of_rms = type == BZ_CACHE_F32   ? 2e-5
                                   : type == BZ_CACHE_F16 ? 3e-3
                                   : type == BZ_CACHE_Q8  ? 2e-2
                                                          : 0.2};
    uint64_t dispatches[2] = {0};
    for (uint32_t at = 0, i = 0; open && at < until; i++) {
        const uint32_t n = i % 5 == 4 ? 1 : i % 7 == 6 ? 9 : 16;
        int32_t ids[16];
        for (uint32_t k = 0; k < n; k++) {
            ids[k] = (int32_t)random_below(CACHE_IDS);
        }
        uint64_t before = gpu_counts_of(p.device).dispatches;
        open = parity_check(&p, &runs[n > 1], &(parity_pass){.n = n, .position = at, .ids = ids},
                            limit, "%u rows at %u", n, at);
        if (n == 16) { /* the first such pass, and the last */
            dispatches[at > 0] = gpu_counts_of(p.device).dispatches - before;
        }
        at += n;
    }
    CHECKF(!open || dispatches[1] > dispatches[0], "all in one binding");
    parity_release(&p, &runs[0]);
    parity_release(&p, &runs[1]);
    parity_close(&p);
    weights_free(&w);
}

/* ---- workgroups
 * ---------------------------------------------------------------------------------- */

static void test_workgroups(bz_type type, uint64_t k, uint64_t outputs)
{
    char name[100];
    snprintf(name, sizeof name, "a product of %s and %d outputs in two dimensions of workgroups",
             bz_type_of((uint32_t)type)->name, (int)outputs);
    if (!starts(name)) {
        return;
    }
    memory_weights w = {0};
    bz_weight x = inputs_for(&w, type, k, 8), m = weights_random(&w, type, k, outputs, 1);
    set_limits(real.max_binding, real.max_buffer,
               97); /* no power of two: the last ones have nothing to do */
    parity p;
    bool open = parity_open(&p, &w, &(parity_options){.limits = &limits});
    for (int c = 0; open && c < 2; c++) {
        bz_plan *plan = parity_plan(&p, rows[c][0]);
        bz_tensor y = bz_linear(plan, bz_embed(plan, x, 1, "x"), m, "y");
        parity_run r =
            parity_prepare(&p, plan, bz_columns(plan, y, (uint32_t)outputs - 1500, 1500));
        parity_check(&p, &r, &(parity_pass){.n = rows[c][1]}, sum_of(k),
                     "the last outputs, %u rows", rows[c][1]);
        parity_release(&p, &r);
        plan = parity_plan(&p, rows[c][0]);
        y = bz_linear(plan, bz_embed(plan, x, 1, "x"), m, "y");
        r = parity_prepare(&p, plan, bz_columns(plan, y, 0, 1500));
        parity_check(&p, &r, &(parity_pass){.n = rows[c][1]}, sum_of(k),
                     "the first outputs, %u rows", rows[c][1]);
        parity_release(&p, &r);
    }
    parity_close(&p);
    weights_free(&w);
}

/* The parameter block of a pass has a fixed capacity of rows. */
static void test_rows(void)
{
    if (!starts("a pass of more rows than there is room for")) {
        return;
    }
    memory_weights w = {0};
    bz_weight x = weights_random(&w, BZ_F32, 32, 3, 1);
    parity p;
    bool open = parity_open(&p, &w, &(parity_options){.limits = &limits});
    if (open) {
        bz_plan *plan = parity_plan(&p, GPU_MAX_ROWS);
        parity_run r = parity_prepare(&p, plan, bz_embed(plan, x, 1, "x"));
        parity_check(&p, &r, &(parity_pass){.n = 3}, sum_of(32), "3 rows of %d", GPU_MAX_ROWS);
        parity_release(&p, &r);
        plan = parity_plan(&p, GPU_MAX_ROWS + 1);
        bz_schedule *s = NULL;
        bz_error err = {0};
        CHECK(bz_plan_finish(plan, bz_take_rows(plan, bz_embed(plan, x, 1, "x"), "rows"), &err) ==
              BZ_OK);
        CHECKF(p.backend[1]->prepare(p.backend[1], plan, &s, &err) == BZ_BAD_REQUEST, "%s",
               err.text);
        p.backend[1]->release(p.backend[1], s);
        bz_plan_free(plan);
    }
    parity_close(&p);
    weights_free(&w);
}

/* ---- at full size
 * ----------------------------------------------------------------------------------- */

/* As wide as a large vocabulary, and larger than the baseline's 128 MiB: several bindings, more
 * than 65,535 workgroups. */
static void test_large(void)
{
    if (quick_run() || !starts("a matrix of 150 MB and 600,000 outputs")) {
        return;
    }
    enum { K = 64, OUTPUTS = 600000 };
    memory_weights w = {0};
    bz_weight x = weights_random(&w, BZ_F32, K, 3, 1),
              m = weights_random(&w, BZ_F32, K, OUTPUTS, 1);
    parity p;
    bool open = parity_open(&p, &w, &(parity_options){.limits = &limits});
    for (uint32_t n = 1; open && n <= 3; n += 2) {
        bz_plan *plan = parity_plan(&p, n == 1 ? 1 : 8);
        bz_tensor y =
            bz_linear(plan, bz_take_rows(plan, bz_embed(plan, x, 1, "x"), "rows"), m, "y");
        parity_run r = parity_prepare(&p, plan, bz_softcap(plan, y, 30, "y"));
        parity_check(&p, &r, &(parity_pass){.n = n}, sum_of(K), "%u rows", n);
        parity_release(&p, &r);
    }
    parity_close(&p);
    weights_free(&w);
}

int main(int argc, char **argv)
{
    devices_keep();
    wanted = argc > 1 ? argv[1] : "";
    random_seed_or(20240611);
    real = parity_limits();
    test_rows();
    test_products(BZ_F32, 2048, 300); /* four outputs at a time */
    test_products(BZ_F16, 2051, 601); /* one at a time */
    test_products(BZ_Q8_0, 2048, 801);
    test_products(BZ_Q4_K, 2048, 2000); /* wide loads */
    test_products(BZ_Q6_K, 2048, 1300);
    test_products(BZ_MXFP4, 2048, 2002);
    test_table(BZ_Q4_0);
    test_table(BZ_Q6_K);
    test_table(BZ_F32);
    test_experts(BZ_F32, 256, 160); /* cut between experts */
    test_experts(BZ_Q8_0, 256, 601);
    test_experts(BZ_Q4_K, 1024, 300);
    test_experts(BZ_F32, 256, 500); /* and within them */
    test_experts(BZ_Q8_0, 1024, 400);
    test_cache(256, BZ_CACHE_F16, true, 700);
    test_cache(256, BZ_CACHE_F32, true, quick_run() ? 1000 : 2000); /* 4 or 7 bindings */
    test_cache(256, BZ_CACHE_F16, false, 700);
    test_cache(264, BZ_CACHE_F16, true, 700); /* not in tiles */
    if (!quick_run()) {
        test_cache(256, BZ_CACHE_Q8, true, 1300);
        test_cache(264, BZ_CACHE_Q8, true, 1300);
        test_cache(256, BZ_CACHE_Q4, true, 2400);
    }
    test_workgroups(BZ_F32, 32, 8000);
    test_workgroups(BZ_Q4_K, 256, 8000);
    test_workgroups(BZ_Q5_0, 32, 8001);
    test_large();
    return finish();
}
