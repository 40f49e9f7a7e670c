/* Diffusion models on the GPU: the steps of a canvas against the CPU, then the whole model against
 * Hugging Face's outputs, on this device and on one with the minimum limits; what a step reads
 * back, and that a second canvas does not encode the prompt again.
 *
 *   sh tools/gpu-env.sh build/tests/gpu/test_diffusion [part of a case's name]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/session.h"
#include "support/canvas.h"
#include "support/check.h"
#include "support/devices.h"
#include "support/forward.h"
#include "support/parity.h"
#include "support/random.h"

static const char *wanted = "";

/* ---- steps -------------------------------------------------------------------------- */

/* Logits of a shape that models have: most far below a few, `flat`: none stands out. */
static float *some_logits(uint32_t rows, uint32_t vocab, bool flat)
{
    float *z = malloc((size_t)rows * vocab * sizeof *z);
    for (size_t i = 0; i < (size_t)rows * vocab; i++) {
        z[i] = flat ? random_float() : 3 * random_float() - 12;
    }
    for (uint32_t r = 0; r < rows; r++) {
        for (int k = 0; !flat && k < 4; k++) {
            z[(size_t)r * vocab + random_below(vocab)] = 2 * random_float() + (float)(r % 9);
        }
    }
    return z;
}

static void draws(float *u, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        u[i] = i == 0 ? 0 : i == 1 ? 0.99999994f : (random_float() + 1) / 2 * 0.9999f;
    }
}

/* Chosen ids may differ where a draw falls between two tokens: then the sums up to them do not. */
static bool same_choice(const float *z, uint32_t vocab, float t, float u, uint32_t a, uint32_t b)
{
    double total = 0, sum = 0, low = 0, high = 0, peak = -1e30;
    for (uint32_t v = 0; v < vocab; v++) {
        peak = (double)(z[v] / t) > peak ? (double)(z[v] / t) : peak;
    }
    for (uint32_t v = 0; v < vocab; v++) {
        total += exp((double)(z[v] / t) - peak);
    }
    for (uint32_t v = 0; v < vocab; v++) {
        sum += exp((double)(z[v] / t) - peak) / total;
        low = v == (a < b ? a : b) ? sum : low;
        high = v + 1 == (a < b ? b : a) ? sum : high;
    }
    return a == b || (fabs(low - (double)u) < 2e-6 && fabs(high - (double)u) < 2e-6);
}

static void test_logit_stats(uint32_t vocab, uint32_t rows, float temperature, bool flat)
{
    memory_weights w = {0};
    parity p;
    weights_random(&w, BZ_F32, 32, 4, 1); /* a model has some */
    if (!parity_open(&p, &w, &(parity_options){.f32_cache = true})) {
        return;
    }
    bz_plan *plan = parity_plan(&p, rows);
    bz_tensor stats = BZ_NO_TENSOR;
    bz_logit_stats(plan, bz_kept_tensor(plan, vocab), 0, &stats, "logit_stats");
    parity_run r = parity_prepare(&p, plan, stats);
    float *z = some_logits(rows, vocab, flat), u[512];
    uint32_t out[512];
    draws(u, rows);
    for (uint32_t i = 0; i < rows; i++) {
        out[i] = i;
    }
    if (rows > 2 && vocab > 3) { /* values that are not finite are ignored */
        z[vocab + 2] = NAN;
        z[2 * vocab + 1] = -INFINITY;
        z[2 * vocab + 3] = INFINITY;
    }
    const parity_pass pass = {.n = rows,
                              .n_out = rows,
                              .out = out,
                              .kept_input = z,
                              .uniform = u,
                              .temperature = temperature};
    float *cpu = parity_output(p.backend[0], r.schedule[0], p.kv[0], &pass, BZ_STAT_COLUMNS);
    float *got = parity_output(p.backend[1], r.schedule[1], p.kv[1], &pass, BZ_STAT_COLUMNS);
    for (uint32_t i = 0; cpu && got && i < rows; i++) {
        const float *a = cpu + i * BZ_STAT_COLUMNS, *b = got + i * BZ_STAT_COLUMNS;
        CHECKF(a[BZ_STAT_BEST] == b[BZ_STAT_BEST], "row %u: best is %g, not %g", i, (double)b[0],
               (double)a[0]);
        CHECKF(fabsf(a[BZ_STAT_ENTROPY] - b[BZ_STAT_ENTROPY]) < 1e-5f + 1e-5f * a[BZ_STAT_ENTROPY],
               "row %u: entropy %.8g, not %.8g", i, (double)b[BZ_STAT_ENTROPY],
               (double)a[BZ_STAT_ENTROPY]);
        CHECKF(fabsf(a[BZ_STAT_SUM] / b[BZ_STAT_SUM] - 1) < 1e-5f, "row %u: sum", i);
        CHECKF(fabsf(a[BZ_STAT_MAX] - b[BZ_STAT_MAX]) < 1e-5f, "row %u: peak", i);
        CHECKF(i == 1 || i == 2 ||
                   same_choice(z + (size_t)i * vocab, vocab, temperature, u[i],
                               (uint32_t)a[BZ_STAT_DRAWN], (uint32_t)b[BZ_STAT_DRAWN]),
               "row %u: %g was drawn, not %g", i, (double)b[BZ_STAT_DRAWN],
               (double)a[BZ_STAT_DRAWN]);
        CHECKF(i || b[BZ_STAT_DRAWN] == a[BZ_STAT_DRAWN],
               "a draw of 0 takes the first token there is");
    }
    free(cpu);
    free(got);
    free(z);
    parity_release(&p, &r);
    parity_close(&p);
    weights_free(&w);
}

/* A row without any finite value: never a token. */
static void test_broken_row(void)
{
    memory_weights w = {0};
    parity p;
    weights_random(&w, BZ_F32, 32, 4, 1);
    if (!parity_open(&p, &w, &(parity_options){.f32_cache = true})) {
        return;
    }
    bz_plan *plan = parity_plan(&p, 2);
    bz_tensor stats = BZ_NO_TENSOR;
    bz_logit_stats(plan, bz_kept_tensor(plan, 3000), 0, &stats, "logit_stats");
    parity_run r = parity_prepare(&p, plan, stats);
    float *z = some_logits(2, 3000, true), u[2] = {0.5f, 0.5f};
    const uint32_t out[] = {0, 1};
    for (int i = 0; i < 3000; i++) {
        z[i] = NAN;
    }
    const parity_pass pass = {
        .n = 2, .n_out = 2, .out = out, .kept_input = z, .uniform = u, .temperature = 0.5f};
    for (int b = 0; b < 2; b++) {
        float *got = parity_output(p.backend[b], r.schedule[b], p.kv[b], &pass, BZ_STAT_COLUMNS);
        CHECK(got && got[BZ_STAT_ENTROPY] < 0 && got[BZ_STAT_COLUMNS + BZ_STAT_ENTROPY] > 0);
        free(got);
    }
    free(z);
    parity_release(&p, &r);
    parity_close(&p);
    weights_free(&w);
}

/* Logits of any size after a soft cap: within it, and NaN is never a token. */
static void test_extreme_logits(void)
{
    enum { ROWS = 4, VOCAB = 3000 };
    static const float some[] = {3.4e38f, -3.4e38f, 1e30f, -1e30f, 451,      -449,      1e-42f,
                                 -1e-42f, 0,        -0.0f, 29.9f,  INFINITY, -INFINITY, NAN};
    memory_weights w = {0};
    parity p;
    weights_random(&w, BZ_F32, 32, 4, 1);
    if (!parity_open(&p, &w, &(parity_options){.f32_cache = true})) {
        return;
    }
    float *z = some_logits(ROWS, VOCAB, true), u[ROWS] = {0, 0.3f, 0.6f, 0.9f};
    const uint32_t out[] = {0, 1, 2, 3};
    for (int i = 0; i < ROWS * VOCAB; i++) {
        const size_t k = random_below(200);
        z[i] = i / VOCAB == 3 ? NAN : k < sizeof some / sizeof *some ? some[k] : 100 * z[i];
    }
    for (int stats = 0; stats < 2; stats++) {
        bz_plan *plan = parity_plan(&p, ROWS);
        bz_tensor y = bz_softcap(plan, bz_read_kept(plan, bz_kept_tensor(plan, VOCAB), "z"), 30,
                                 "y"),
                  j = BZ_NO_TENSOR;
        if (stats) {
            bz_logit_stats(plan, y, 0, &j, "logit_stats");
        }
        parity_run r = parity_prepare(&p, plan, stats ? j : y);
        const parity_pass pass = {.n = ROWS,
                                  .n_out = ROWS,
                                  .out = out,
                                  .kept_input = z,
                                  .uniform = u,
                                  .temperature = 0.8f};
        const uint32_t cols = stats ? BZ_STAT_COLUMNS : VOCAB;
        float *got[2];
        for (int b = 0; b < 2; b++) {
            got[b] = parity_output(p.backend[b], r.schedule[b], p.kv[b], &pass, cols);
        }
        for (uint32_t i = 0; CHECK(got[0] && got[1]) && i < ROWS * cols; i++) {
            const float want = got[0][i], have = got[1][i];
            const bool drawn = stats && i % cols == BZ_STAT_DRAWN; /* may fall between two */
            CHECKF(drawn || (!isfinite(want) && !isfinite(have)) ||
                       fabsf(want - have) <= 1e-4f + 1e-5f * fabsf(want),
                   "%u: %g, not %g (of %g)", i, (double)have, (double)want,
                   stats ? 0 : (double)z[i]);
            CHECKF(stats || isnan(z[i]) == !isfinite(have), "%u: %g became %g", i, (double)z[i],
                   (double)have);
        }
        CHECK(!stats ||
              (got[1][3 * BZ_STAT_COLUMNS + BZ_STAT_ENTROPY] < 0 && got[1][BZ_STAT_ENTROPY] > 0));
        free(got[0]);
        free(got[1]);
        parity_release(&p, &r);
    }
    free(z);
    parity_close(&p);
    weights_free(&w);
}

typedef enum shape_of { SHARP, FLAT, ONE_FLAT, TAILS, BROKEN } shape_of;

/* Rows of logits: few tokens hold them, or all do; three rows flat among sharp ones; a long tail
 * that is cut; flat, but a row without any number, and numbers that are too large. */
static float *shaped_logits(uint32_t rows, uint32_t vocab, shape_of shape)
{
    float *z = some_logits(rows, vocab, shape == FLAT || shape == TAILS || shape == BROKEN);
    for (size_t i = 0; i < (size_t)rows * vocab && (shape == SHARP || shape == ONE_FLAT); i++) {
        z[i] -= z[i] < -8 && i % 37 ? 30 : 0; /* one in 37 counts */
    }
    for (uint32_t i = 0; i < vocab && shape == ONE_FLAT; i++) {
        z[vocab + i] = random_float();
        z[2 * vocab + i] = 0;                  /* all of the same size: */
        z[3 * vocab + i] = i == 5 ? 0 : -0.9f; /* ... but one */
    }
    for (size_t i = 0; i < (size_t)rows * vocab && shape == TAILS; i++) {
        z[i] = 9 * z[i] * z[i] * z[i];
    }
    if (shape == SHARP && vocab > 2000) {
        z[17] = NAN;
        z[1999] = -INFINITY;
    }
    for (uint32_t i = 0; i < vocab && shape == BROKEN; i++) {
        z[i] = i % 2 ? NAN : -INFINITY;
        z[vocab + i] = i % 7   ? z[vocab + i]
                       : i % 3 ? NAN
                               : 3.4e38f; /* NaN after division by the temperature */
    }
    return z;
}

static double greatest_of(const memory_weights *w, bz_weight table)
{
    const bz_weight_info *info = bz_weight_of(&w->table, table);
    float *row = malloc(info->ne[0] * sizeof *row);
    double most = 0;
    for (uint64_t r = 0; r < info->ne[1]; r++) {
        bz_dequantize(info->type,
                      w->bytes[table.id - 1] + r * bz_row_bytes(info->type, info->ne[0]), row,
                      info->ne[0]);
        for (uint64_t i = 0; i < info->ne[0]; i++) {
            most = fmax(most, fabs((double)row[i]));
        }
    }
    free(row);
    return most;
}

/* `pieces`: the table lies in several bindings. Exact sessions leave 2^-16 of a row out at most,
 * others 2^-12: values are off by no more than that part of the table's greatest, times the scale.
 */
static void test_soft_embed(bz_type type, uint32_t width, uint32_t vocab, uint32_t rows,
                            shape_of shape, bool pieces, bool exact)
{
    memory_weights w = {0};
    parity p;
    gpu_limits limits = parity_limits();
    bz_weight table = weights_random(&w, type, width, vocab, 1);
    /* the logits must lie in one binding, with the partial sums of one or two splits */
    const uint64_t least = 4ull * rows * (vocab + 8 * width) + 65536;
    limits.max_binding = (least > bz_weight_of(&w.table, table)->size / 3
                              ? least
                              : bz_weight_of(&w.table, table)->size / 3) /
                         256 * 256;
    if (!parity_open(&p, &w,
                     &(parity_options){.f32_cache = exact, .limits = pieces ? &limits : NULL})) {
        return;
    }
    bz_plan *plan = parity_plan(&p, rows);
    bz_tensor stats = BZ_NO_TENSOR, z = bz_kept_tensor(plan, vocab),
              soft = bz_kept_tensor(plan, width);
    bz_logit_stats(plan, z, 0, &stats, "logit_stats");
    bz_soft_embed(plan, z, stats, table, 7.5f, 0, soft, "soft");
    parity_run r = parity_prepare(&p, plan, soft);
    float *values = shaped_logits(rows, vocab, shape), u[512];
    draws(u, rows);
    parity_check(&p, &r,
                 &(parity_pass){.n = rows, .kept_input = values, .uniform = u, .temperature = 0.8f},
                 (bound){.of_rms = 2e-5,
                         .absolute = 7.5 * greatest_of(&w, table) * (exact ? 0x1p-16 : 0x1p-12)},
                 "%u rows", rows);
    CHECK(!pieces || p.model->weights.map.first_piece[1] > 1);
    free(values);
    parity_release(&p, &r);
    parity_close(&p);
    weights_free(&w);
}

/* What leaving tokens out costs: error of the mean embedding, of its size, over a distribution as
 * models have them early in a canvas (normal logits; a canvas's temperatures). Tokens left out
 * average, so that it is far below their part of the sum. */
static void test_left_out(bool exact)
{
    enum { WIDTH = 256, VOCAB = 40000, ROWS = 4 };
    memory_weights w = {0};
    parity p;
    bz_weight table = weights_random(&w, BZ_Q8_0, WIDTH, VOCAB, 1);
    if (!parity_open(&p, &w, &(parity_options){.f32_cache = exact})) {
        return;
    }
    bz_plan *plan = parity_plan(&p, ROWS);
    bz_tensor stats = BZ_NO_TENSOR, logits = bz_kept_tensor(plan, VOCAB),
              soft = bz_kept_tensor(plan, WIDTH);
    bz_logit_stats(plan, logits, 0, &stats, "logit_stats");
    bz_soft_embed(plan, logits, stats, table, 1, 0, soft, "soft");
    parity_run r = parity_prepare(&p, plan, soft);
    float *z = malloc(ROWS * VOCAB * sizeof *z), u[ROWS];
    for (int i = 0; i < ROWS * VOCAB; i++) {
        z[i] = 0;
        for (int k = 0; k < 12; k++) {
            z[i] += 3 * random_float(); /* deviation 6 */
        }
    }
    draws(u, ROWS);
    const parity_pass pass = {.n = ROWS, .kept_input = z, .uniform = u, .temperature = 0.6f};
    float *want = parity_output(p.backend[0], r.schedule[0], p.kv[0], &pass, WIDTH);
    float *got = parity_output(p.backend[1], r.schedule[1], p.kv[1], &pass, WIDTH);
    double off = 0, size = 0;
    for (int i = 0; CHECK(want && got) && i < ROWS * WIDTH; i++) {
        off += (double)(got[i] - want[i]) * (double)(got[i] - want[i]);
        size += (double)want[i] * (double)want[i];
    }
    printf("  %s: error of the mean embedding %.1e of its size\n", exact ? "exact" : "rounded",
           sqrt(off / size));
    CHECKF(sqrt(off / size) < (exact ? 0x1p-17 : 0x1p-13),
           "the mean embedding is off by %g of its size", sqrt(off / size));
    free(want);
    free(got);
    free(z);
    parity_release(&p, &r);
    parity_close(&p);
    weights_free(&w);
}

/* Blocks of rows, each at its offset, and the rest for the next pass. */
static void test_kept(void)
{
    enum { ROWS = 24, BLOCK = 8, WIDTH = 40, VOCAB = 300 };
    memory_weights w = {0};
    parity p;
    bz_weight table = weights_random(&w, BZ_F32, WIDTH, VOCAB, 1);
    if (!parity_open(&p, &w, &(parity_options){.f32_cache = true})) {
        return;
    }
    bz_plan *plan = NULL;
    bz_error err = {0};
    bz_schedule *schedule[2] = {0};
    CHECK(bz_plan_new(&plan, &w.table, NULL, 0, ROWS, BLOCK, &err) == BZ_OK);
    bz_tensor kept = bz_kept_tensor(plan, WIDTH), stats = BZ_NO_TENSOR;
    bz_tensor x = bz_add(plan, bz_embed(plan, table, 0.5f, "x"), bz_read_kept(plan, kept, "before"),
                         1, "sum");
    for (uint32_t row = 0; row < ROWS; row += BLOCK) {
        bz_tensor z = bz_linear(plan, bz_take_rows_from(plan, x, row, "rows"), table, "z");
        bz_logit_stats(plan, z, row, &stats, "logit_stats");
        bz_soft_embed(plan, z, stats, table, 2, row, kept, "soft");
    }
    CHECK(bz_plan_finish(plan, stats, &err) == BZ_OK);
    float u[ROWS];
    uint32_t out[BLOCK];
    draws(u, ROWS);
    for (uint32_t i = 0; i < BLOCK; i++) {
        out[i] = i;
    }
    for (int b = 0; b < 2; b++) {
        CHECKF(p.backend[b]->prepare(p.backend[b], plan, &schedule[b], &err) == BZ_OK, "%s",
               err.text);
    }
    float *last = NULL;
    for (int pass = 0; pass < 4; pass++) { /* fresh, two after it, fresh again */
        float *got[2] = {0};
        for (int b = 0; b < 2; b++) {
            int32_t ids[ROWS];
            for (int i = 0; i < ROWS; i++) {
                ids[i] = i + 31 * pass;
            }
            const parity_pass how = {.n = ROWS,
                                     .ids = ids,
                                     .n_out = BLOCK,
                                     .out = out,
                                     .reset_kept = pass % 3 == 0,
                                     .uniform = u,
                                     .temperature =
                                         2}; /* no row is sure: entropies say what came in */
            float *some = parity_output(p.backend[b], schedule[b], p.kv[b], &how, 1);
            free(some);
            got[b] = malloc(ROWS * BZ_STAT_COLUMNS * sizeof(float));
            memcpy(got[b], p.backend[b]->output(p.backend[b], schedule[b]),
                   ROWS * BZ_STAT_COLUMNS * sizeof(float));
        }
        double apart = 0, since = 0;
        for (int i = 0; i < ROWS; i++) {
            const int e = i * BZ_STAT_COLUMNS + BZ_STAT_ENTROPY;
            apart = fmax(apart, fabs((double)(got[0][e] - got[1][e])));
            CHECK(isfinite(got[1][e])); /* fmax ignores NaN */
            since = last ? fmax(since, fabs((double)(got[1][e] - last[e]))) : 1;
        }
        CHECKF(apart < 1e-4, "pass %d: entropies differ by %g", pass, apart);
        CHECKF(since > 1e-3, "pass %d gives what the one before gave", pass);
        free(last);
        last = got[1];
        free(got[0]);
    }
    free(last);
    for (int b = 0; b < 2; b++) {
        p.backend[b]->release(p.backend[b], schedule[b]);
    }
    bz_plan_free(plan);
    parity_close(&p);
    weights_free(&w);
}

/* A prompt in chunks, then canvases after it: every row sees the last window - 1 rows of the prompt
 * and all of the canvas. */
static void test_both_ways(uint32_t width, uint32_t heads, uint32_t kv_heads, uint32_t window,
                           uint32_t canvas, bool f32)
{
    enum { IDS = 64 };
    memory_weights w = {0};
    parity p;
    const bz_cache_info cache = {.kv_heads = kv_heads, .head_dim = width, .window = window};
    bz_weight q = weights_random(&w, BZ_F32, heads * width, IDS, 1),
              kv = weights_random(&w, BZ_F32, 2 * kv_heads * width, IDS, 1);
    const parity_options o = {.f32_cache = f32, .caches = &cache, .n_caches = 1, .slack = 127};
    if (!parity_open(&p, &w, &o)) {
        return;
    }
    parity_run runs[2]; /* causal; bidirectional */
    for (int k = 0; k < 2; k++) {
        bz_plan *plan = parity_plan(&p, k ? canvas : 64);
        bz_tensor x = bz_embed(plan, q, 1, "q"), y = bz_embed(plan, kv, 1, "kv");
        const uint32_t n = kv_heads * width;
        bz_kv_write(plan, bz_columns(plan, y, 0, n), bz_columns(plan, y, n, n), (bz_cache){1},
                    "write");
        x = k ? bz_attend_bidirectional(plan, x, (bz_cache){1}, heads, width, window, "y")
              : bz_attend(plan, x, (bz_cache){1}, heads, width, window, "y");
        runs[k] = parity_prepare(&p, plan, x);
    }
    const uint32_t prompt[] = {5, 64, 30, 64, 64, 64};
    uint32_t at = 0;
    for (int i = 0; i < 6; i++) {
        int32_t ids[512];
        for (uint32_t k = 0; k < 512; k++) {
            ids[k] = (int32_t)random_below(IDS);
        }
        const bound limit = {.of_rms = 1e-5 + 2e-8 * width};
        parity_check(&p, &runs[0], &(parity_pass){.n = prompt[i], .position = at, .ids = ids},
                     limit, "prompt at %u", at);
        at += prompt[i];
        for (int again = 0; again < 2;
             again++) { /* a canvas does not change what is after or before it */
            parity_check(&p, &runs[1],
                         &(parity_pass){.n = canvas, .position = at, .ids = ids + 7 * again}, limit,
                         "canvas at %u", at);
        }
    }
    parity_release(&p, &runs[0]);
    parity_release(&p, &runs[1]);
    parity_close(&p);
    weights_free(&w);
}

static bool wants(const char *name)
{
    if (!strstr(name, wanted)) {
        return false;
    }
    begin("%s", name);
    return true;
}

static void steps(void)
{
    const uint32_t vocabularies[] = {4, 40, 2048, 2049, 70000, 262144, 1000003};
    char name[120];
    for (size_t i = 0; i < sizeof vocabularies / sizeof *vocabularies; i++) {
        snprintf(name, sizeof name, "logit_stats, vocabulary of %u", vocabularies[i]);
        if (wants(name)) {
            test_logit_stats(vocabularies[i], i < 4 ? 64 : 5, 0.8f, false);
            test_logit_stats(vocabularies[i], 3, 0.4f, true);
        }
    }
    if (wants("logit_stats, a row of NaN")) {
        test_broken_row();
    }
    if (wants("softcap and logit_stats, logits of any size")) {
        test_extreme_logits();
    }
    const bz_type types[] = {BZ_F32, BZ_F16, BZ_BF16, BZ_Q6_K, BZ_Q8_0, BZ_Q4_K, BZ_Q5_K, BZ_Q4_0};
    for (int i = 0; i < (quick_run() ? 4 : 8); i++) {
        const bool blocks = bz_type_of((uint32_t)types[i])->block_values == 256;
        snprintf(name, sizeof name, "soft_embed %s", bz_type_of((uint32_t)types[i])->name);
        if (wants(name)) {
            test_soft_embed(types[i], blocks ? 256 : 96, 700, 64, SHARP, false, true);
            test_soft_embed(types[i], blocks ? 512 : 160, 5003, 7, FLAT, false, true);
            test_soft_embed(types[i], blocks ? 256 : 160, 5003, 5, SHARP, false, true);
            test_soft_embed(types[i], blocks ? 512 : 160, 3004, 65, FLAT, false,
                            true); /* even; one row more than a tile */
            test_soft_embed(types[i], blocks ? 768 : 192, 3001, 6, SHARP, false,
                            true); /* whole runs of 64 columns */
        }
    }
    if (wants("soft_embed of a table in several pieces")) {
        test_soft_embed(BZ_F32, 200, 3001, 9, SHARP, true, true);
        test_soft_embed(BZ_Q8_0, 1024, 4000, 3, FLAT, true, true);
        test_soft_embed(BZ_Q6_K, 1024, 4000, 3, SHARP, true, true);
        test_soft_embed(BZ_Q6_K, 1024, 4000, 3, FLAT, true, true);
        test_soft_embed(BZ_F32, 203, 3001, 34, FLAT, true, true);
    }
    if (wants("soft_embed, flat rows among sharp ones")) {
        test_soft_embed(BZ_F32, 72, 5003, 64, ONE_FLAT, false, true);
    }
    if (wants("soft_embed of rows that several workgroups share")) {
        test_soft_embed(BZ_F32, 4232, 901, 3, SHARP, false, true);
        test_soft_embed(BZ_Q4_0, 4224, 901, 3, SHARP, false, true);
        test_soft_embed(BZ_F32, 12, 40001, 3, TAILS, false, false);
    }
    if (wants("soft_embed of long tails, exact and not")) {
        test_soft_embed(BZ_F32, 72, 50000, 3, TAILS, false, true);
        test_soft_embed(BZ_F32, 72, 50000, 3, TAILS, false, false);
    }
    if (wants("soft_embed, rows of NaN")) {
        test_soft_embed(BZ_F32, 72, 3004, 6, BROKEN, false, true);
        test_soft_embed(BZ_Q6_K, 512, 5000, 7, BROKEN, false, false);
    }
    if (wants("soft_embed, error of omitted tokens")) {
        test_left_out(true);
        test_left_out(false);
    }
    if (wants("tensors kept from pass to pass")) {
        test_kept();
    }
    const uint32_t shapes[][5] = {{64, 4, 2, 0, 16}, {64, 4, 1, 40, 48}, {256, 4, 2, 100, 100},
                                  {32, 4, 2, 8, 16}, {40, 3, 1, 0, 11},  {512, 2, 1, 0, 70},
                                  {64, 2, 2, 30, 5}};
    for (int i = 0; i < (quick_run() ? 4 : 7); i++) {
        const uint32_t *s = shapes[i];
        snprintf(name, sizeof name,
                 "attend bidirectionally, %u heads of %u on %u, window %u, canvas of %u", s[1],
                 s[0], s[2], s[3], s[4]);
        if (wants(name)) {
            test_both_ways(s[0], s[1], s[2], s[3], s[4], false);
            test_both_ways(s[0], s[1], s[2], s[3], s[4], true);
        }
    }
}

/* ---- the model ------------------------------------------------------------------------- */

typedef struct meter {
    const bz_model *m;
    gpu_counts last;
    uint64_t read[64], dispatches[64];
    uint32_t n;
} meter;

static int on_step(void *user, const bz_event *e)
{
    meter *x = user;
    if (e->kind == BZ_EVENT_CANVAS && x->n < 64) {
        const gpu_counts now = gpu_counts_of(bz_model_device(x->m));
        x->read[x->n] = now.read_bytes - x->last.read_bytes;
        x->dispatches[x->n++] = now.dispatches - x->last.dispatches;
        x->last = now;
    }
    return 0;
}

/* A step reads back the result of logit_stats only; the step after a canvas has one more encoder
 * pass of a canvas, for any prompt length. */
static void test_counts(const golden *g, const bz_model *m)
{
    size_t n;
    const int32_t *prompt = golden_i32(g, &n, "prompt");
    int32_t longer[200];
    uint64_t after_canvas[2];
    for (int k = 0; k < 2; k++) {
        const uint32_t length = k ? 200 : (uint32_t)n;
        for (uint32_t i = 0; i < length; i++) {
            longer[i] = prompt[i % n];
        }
        bz_session *s = session_or_fail(
            m, &(bz_session_options){.size = sizeof(bz_session_options), .chunk = 64});
        bz_error err = {0};
        bz_job *job = NULL;
        meter x = {.m = m};
        CHECKF(prefill(s, longer, length, 0, NULL, &err) == BZ_OK, "%s", err.text);
        x.last = gpu_counts_of(bz_model_device(m));
        const bz_generate_options o = {
            .size = sizeof o, .max_tokens = 32, .ignore_end = true, .sampling = {.seed = 1}};
        CHECK(bz_session_generate(s, &o, &job, &err) == BZ_OK);
        CHECKF(bz_job_run(job, &(bz_host){.size = sizeof(bz_host), .event = on_step, .user = &x},
                          &err) == BZ_OK,
               "%s", err.text);
        bz_job_free(job);
        CHECKF(x.n == 12, "%u steps", x.n);
        for (uint32_t i = 0; i < x.n; i++) {
            CHECKF(x.read[i] == 16 * BZ_STAT_COLUMNS * 4, "step %u read %d bytes", i,
                   (int)x.read[i]);
            CHECKF(i == 6 || x.dispatches[i] == x.dispatches[1],
                   "step %u has %d dispatches, not %d", i, (int)x.dispatches[i],
                   (int)x.dispatches[1]);
        }
        CHECKF(x.dispatches[6] > x.dispatches[1] && x.dispatches[6] < 2 * x.dispatches[1],
               "%d dispatches with encoding, %d without", (int)x.dispatches[6],
               (int)x.dispatches[1]);
        after_canvas[k] = x.dispatches[6];
        CHECK(bz_session_get_stats(s).prefilled == length);
        bz_session_free(s);
    }
    CHECKF(after_canvas[0] == after_canvas[1],
           "a longer prompt is encoded again: %d dispatches, not %d", (int)after_canvas[1],
           (int)after_canvas[0]);
}

/* With 8-bit activations and an f16 cache: the same as the CPU's, within what rounding does. */
static void test_rounded(const golden *g, const bz_model *m, const bz_model *cpu)
{
    size_t n, c, n_logits;
    const int32_t *prompt = golden_i32(g, &n, "prompt"), *ids = golden_i32(g, &c, "step0.canvas");
    const float *want = golden_f32(g, &n_logits, "step0.logits");
    float *out[2] = {calloc(n_logits, 4), calloc(n_logits, 4)};
    for (int k = 0; k < 2; k++) {
        bz_session *s = session_or_fail(k ? m : cpu, NULL);
        bz_error err = {0};
        CHECKF(prefill(s, prompt, n, 0, NULL, &err) == BZ_OK &&
                   canvas_logits(s, ids, NULL, 0, out[k], &err) == BZ_OK,
               "%s", err.text);
        double d = max_difference(out[k], want, n_logits);
        CHECKF(d < 0.1, "%s: logits off by %g", k ? "gpu" : "cpu", d);
        bz_session_free(s);
    }
    free(out[0]);
    free(out[1]);
}

int main(int argc, char **argv)
{
    devices_keep();
    wanted = argc > 1 ? argv[1] : "";
    random_seed_or(20260711);
    steps();
    golden g;
    golden_open(&g, golden_path("diffusion/golden.gguf"));
    const char *devices[] = {"gpu", "gpu-baseline"};
    for (int d = 0; d < 2; d++) {
        char name[100];
        snprintf(name, sizeof name, "%s, diffusion", devices[d]);
        if (!strstr(name, wanted)) {
            continue;
        }
        bz_model *m = open_on_or_fail(golden_path("diffusion/text.gguf"), devices[d]);
        for (int plain = 0; plain < (d ? 1 : 2); plain++) {
            const bz_session_options o = {
                .size = sizeof o, .exact = true, .no_fuse = plain, .chunk = plain ? 5 : 0};
            begin("%s, diffusion: logits of a canvas%s", devices[d], plain ? ", not fused" : "");
            check_canvas_logits(&g, m, &o, 1e-3);
            begin("%s, diffusion: a prompt with an image%s", devices[d],
                  plain ? ", not fused" : "");
            check_canvas_image(devices[d], &o, 1e-3);
            begin("%s, diffusion: recorded generations%s", devices[d], plain ? ", not fused" : "");
            check_generation(&g, m, &o, "gen");
            check_generation(&g, m, &o, "gen_eos");
            check_generation(&g, m, &o, "gen_stop");
        }
        if (d == 0) {
            begin("gpu, diffusion: bytes read back per step, rows encoded per canvas");
            test_counts(&g, m);
            begin("gpu, diffusion: f16 cache");
            bz_model *cpu = open_or_fail(golden_path("diffusion/text.gguf"));
            test_rounded(&g, m, cpu);
            bz_model_free(cpu);
        }
        bz_model_free(m);
    }
    golden_close(&g);
    return finish();
}
