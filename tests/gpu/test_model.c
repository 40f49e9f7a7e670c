/* Whole models on the GPU: against Hugging Face's outputs, against float64 for every block type,
 * and against the CPU. A missing adapter fails. BEZEL_ONLY=PART leaves out models whose name has no
 * such part. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/session.h"
#include "support/check.h"
#include "support/forward.h"
#include "support/golden.h"
#include "support/synth.h"

static bool wants(const char *name)
{
    const char *only = getenv("BEZEL_ONLY");
    return !only || strstr(name, only);
}

static bz_session *gpu_session(const bz_model *m, bool exact, uint32_t chunk)
{
    return session_or_fail(
        m,
        &(bz_session_options){.size = sizeof(bz_session_options), .exact = exact, .chunk = chunk});
}

static float *gpu_logits(const bz_model *m, bool exact, uint32_t chunk, const int32_t *ids,
                         size_t n)
{
    bz_session *s = gpu_session(m, exact, chunk);
    float *out = calloc(n * bz_model_vocab(m), sizeof *out);
    bz_error err = {0};
    uint64_t before = gpu_counts_of(bz_model_device(s->model)).dispatches;
    CHECKF(prefill(s, ids, n, 0, out, &err) == BZ_OK, "%s", err.text);
    CHECK(gpu_counts_of(bz_model_device(s->model)).dispatches > before); /* it really ran there */
    bz_session_free(s);
    return out;
}

/* ---- Hugging Face ------------------------------------------------------------------- */

/* A device as in Safari, Firefox and on phones: no features, no raised limits. */
static void test_baseline(const char *name, const char *path, const char *reference)
{
    if (!wants(name)) {
        return;
    }
    golden g;
    golden_open(&g, reference);
    bz_model *m = open_on_or_fail(path, "gpu-baseline");
    uint32_t vocab = bz_model_vocab(m);
    size_t n, n_logits;
    const int32_t *ids = golden_i32(&g, &n, "text.2.tokens");
    const float *want = golden_f32(&g, &n_logits, "text.2.logits");
    const uint32_t chunks[] = {512, 1};
    for (int c = 0; c < 2; c++) {
        begin("gpu baseline %s chunk %u", name, chunks[c]);
        bz_session *s = session_or_fail(m, &(bz_session_options){.size = sizeof(bz_session_options),
                                                                 .exact = true,
                                                                 .chunk = chunks[c]});
        const gpu_limits *l = gpu_limits_of(bz_model_device(s->model));
        CHECK(!l->f16 && !l->subgroups && l->max_binding == 128u << 20 &&
              l->max_workgroup_storage == 16384);
        float *got = calloc(n * vocab, sizeof *got);
        bz_error err = {0};
        CHECKF(prefill(s, ids, n, 0, got, &err) == BZ_OK, "%s", err.text);
        double d = max_difference(got, want, n * vocab);
        CHECKF(d <= 2e-3, "logits off by %g", d);
        free(got);
        bz_session_free(s);
    }
    bz_model_free(m);
    golden_close(&g);
}

/* `same_weights`: an earlier model has them in another layout. Its small chunks are not repeated:
 * the greedy answers decode too. */
static void test_golden(const char *name, const char *path, const char *reference,
                        bool same_weights)
{
    if (!wants(name)) {
        return;
    }
    golden g;
    golden_open(&g, reference);
    bz_model *m = open_on_or_fail(path, "gpu");
    uint32_t vocab = bz_model_vocab(m);
    for (int k = 0; k < 3; k++) {
        size_t n, n_logits, n_greedy;
        const int32_t *ids = golden_i32(&g, &n, "text.%d.tokens", k);
        const float *want = golden_f32(&g, &n_logits, "text.%d.logits", k);
        const int32_t *greedy = golden_i32(&g, &n_greedy, "text.%d.greedy", k);
        const uint32_t chunks[] = {512, 7, 1};
        for (int c = 0; c < (k == 2 && !same_weights ? 3 : 1); c++) {
            begin("gpu %s prompt %d chunk %u", name, k, chunks[c]);
            float *got = gpu_logits(m, true, chunks[c], ids, n);
            double d = max_difference(got, want, n * vocab);
            CHECKF(d <= 2e-3, "logits off by %g", d);
            free(got);
        }
        if (greedy) {
            begin("gpu %s greedy %d", name, k);
            bz_session *s = gpu_session(m, true, 512);
            bz_error err = {0};
            int32_t made[16] = {0};
            CHECKF(prefill(s, ids, n, 0, NULL, &err) == BZ_OK, "%s", err.text);
            CHECK(generate(s, made, n_greedy) == n_greedy &&
                  memcmp(made, greedy, n_greedy * sizeof *made) == 0);
            bz_session_free(s);
        }
    }
    bz_model_free(m);
    golden_close(&g);
}

/* ---- block types ---------------------------------------------------------------------- */

static double sampled_difference(const synth_entry *e, const float *got, const float *sample,
                                 double *rms)
{
    size_t columns = (e->vocab + e->stride - 1) / e->stride;
    double most = 0, sum = 0;
    for (size_t t = 0; t < e->n_tokens; t++) {
        for (size_t c = 0; c < columns; c++) {
            double d =
                fabs((double)got[t * e->vocab + c * e->stride] - (double)sample[t * columns + c]);
            most = d > most || isnan(d) ? d : most;
            sum += d * d;
        }
    }
    *rms = sqrt(sum / (double)(e->n_tokens * columns));
    return most;
}

/* Compiling kernels takes a software adapter most of the time, and test_kernels.c has every type by
 * itself: with 8-bit activations and with an f16 cache a file of each kind of integers is run. */
static bool is_chosen(const char *name)
{
    static const char *const files[] = {"nano-e-q8_0",    "nano-moe-q8_0", "tiny-e-q4_0",
                                        "tiny-e-q4_k_m",  "tiny-e-q5_k_m", "tiny-dense-q6_k",
                                        "tiny-moe-q4_k_m"};
    bool found = false;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        found = found || strcmp(name, files[i]) == 0;
    }
    return found;
}

static void test_types(void)
{
    synth_file f;
    synth_entry e;
    synth_open(&f);
    while (synth_next(&f, &e)) {
        if (!wants(e.name)) {
            continue;
        }
        char path[128], file[80];
        size_t n;
        snprintf(file, sizeof file, "%s.gguf", e.name);
        bz_model *m = open_on_or_fail(model_path(file), "gpu");
        snprintf(path, sizeof path, "synth/%s.all.f32", e.answer);
        float *sample = read_f32(golden_path(path), &n);
        begin("gpu %s f32", e.name);
        float *got = gpu_logits(m, true, 512, e.tokens, e.n_tokens);
        double rms, most = sampled_difference(&e, got, sample, &rms);
        CHECKF(most <= 2e-3, "off by %g", most);
        free(got);

        if (is_chosen(e.name)) {
            begin("gpu %s 8-bit activations", e.name); /* by the kernels of few rows */
            got = gpu_logits(m, false, 8, e.tokens, e.n_tokens);
            synth_judge(&e, got, sample);
            free(got);
            begin("gpu %s 8-bit activations, many rows", e.name);
            synth_entry many = e;
            snprintf(many.name, sizeof many.name, "many rows of %.40s", e.name);
            got = gpu_logits(m, false, 512, e.tokens, e.n_tokens);
            synth_judge(&many, got, sample);
            free(got);
        }
        bz_model_free(m);

        if (is_chosen(e.name) &&
            !strstr(e.preset, "moe")) { /* where an expert flips, a rounded cache may move a row */
            begin("gpu baseline %s f16 cache",
                  e.name); /* no packed products there: activations stay f32 */
            m = open_on_or_fail(model_path(file), "gpu-baseline");
            got = gpu_logits(m, false, 512, e.tokens, e.n_tokens);
            most = sampled_difference(&e, got, sample, &rms);
            CHECKF(rms <= 0.02 && most <= 0.15, "rms %g, most %g", rms, most);
            free(got);
            bz_model_free(m);
        }
        free(sample);
    }
    synth_judge_all("gpu ");
    synth_close(&f);
}

/* ---- fusing ------------------------------------------------------------------------------ */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Root mean square of the middle row's differences. */
static double middle_difference(const float *a, const float *b, size_t rows, size_t cols)
{
    double by_row[64];
    for (size_t r = 0; r < rows; r++) {
        double sum = 0;
        for (size_t c = r * cols; c < (r + 1) * cols; c++) {
            sum += ((double)a[c] - (double)b[c]) * ((double)a[c] - (double)b[c]);
        }
        by_row[r] = sqrt(sum / (double)cols);
    }
    qsort(by_row, rows, sizeof *by_row, by_size);
    return isfinite(by_row[rows - 1]) ? by_row[rows / 2] : INFINITY;
}

static void test_fusing(const char *file, bool exact)
{
    if (!wants(file)) {
        return;
    }
    begin("gpu %s%s: the fused list has the plain list's results, with fewer dispatches", file,
          exact ? "" : ", 8-bit activations");
    bz_model *m = open_on_or_fail(model_path(file), "gpu");
    uint32_t vocab = bz_model_vocab(m);
    int32_t ids[40];
    for (int i = 0; i < 40; i++) {
        ids[i] = i ? 494 + i * 37 % 139 : 2;
    }
    static const struct {
        uint32_t chunk, tokens;
    } passes[] = {{512, 40}, {1, 12}};
    for (int c = 0; c < 2; c++) {
        const uint32_t n = passes[c].tokens;
        uint64_t dispatches[2];
        float *rows[2];
        for (int plain = 0; plain < 2; plain++) {
            bz_session *s =
                session_or_fail(m, &(bz_session_options){.size = sizeof(bz_session_options),
                                                         .exact = exact,
                                                         .chunk = passes[c].chunk,
                                                         .no_fuse = plain});
            rows[plain] = calloc(n * vocab, sizeof(float));
            uint64_t before = gpu_counts_of(bz_model_device(m)).dispatches;
            bz_error err = {0};
            CHECKF(prefill(s, ids, n, 0, rows[plain], &err) == BZ_OK, "%s", err.text);
            dispatches[plain] = gpu_counts_of(bz_model_device(m)).dispatches - before;
            bz_session_free(s);
        }
        /* a rounding that tips over moves an activation by 1/127, and one near a choice of experts
         * a whole row */
        double d = exact ? max_difference(rows[0], rows[1], n * vocab)
                         : middle_difference(rows[0], rows[1], n, vocab);
        printf("  fused %llu dispatches, plain %llu, off by %g\n",
               (unsigned long long)dispatches[0], (unsigned long long)dispatches[1], d);
        CHECKF(d <= (exact ? 1e-4 : 0.2), "off by %g", d);
        CHECK(dispatches[0] < dispatches[1]);
        free(rows[0]);
        free(rows[1]);
    }
    bz_model_free(m);
}

/* ---- sessions -------------------------------------------------------------------------- */

/* What a session reuses must not matter here either; sums keep their order on one device, so the
 * logits agree closely (row and tile kernels add up in different orders). */
static void test_reuse(void)
{
    if (!wants("nano-e-q4_0 sessions")) {
        return;
    }
    bz_model *m = open_on_or_fail(model_path("nano-e-q4_0.gguf"), "gpu");
    uint32_t vocab = bz_model_vocab(m);
    int32_t ids[200], made[60];
    for (int i = 0; i < 200; i++) {
        ids[i] = i ? 494 + i * 37 % 139 : 2;
    }
    bz_error err = {0};
    bz_session *s = gpu_session(m, true, 16), *fresh = gpu_session(m, true, 512);
    begin("gpu ring wrap, snapshot and prefix reuse agree with a fresh prefill");
    CHECKF(prefill(s, ids, 50, 46, NULL, &err) == BZ_OK, "%s", err.text);
    CHECK(generate(s, made, 60) == 60);
    int32_t talk[120];
    memcpy(talk, ids, 46 * sizeof *talk);
    memcpy(talk + 46, ids + 100, 70 * sizeof *talk);
    bz_session_stats before = bz_session_get_stats(s);
    CHECK(prefill(s, talk, 116, 0, NULL, &err) == BZ_OK);
    CHECK(bz_session_get_stats(s).prefilled - before.prefilled == 70);
    CHECK(bz_session_get_stats(s).restores == 1);
    CHECK(prefill(fresh, talk, 116, 0, NULL, &err) == BZ_OK);
    double d = max_difference(bz_session_logits(s), bz_session_logits(fresh), vocab);
    CHECKF(d <= 1e-3, "off by %g", d);
    bz_session_free(s);

    begin("gpu caches grow past their first size");
    s = gpu_session(m, true, 512);
    int32_t *many = malloc(400 * sizeof *many);
    for (int i = 0; i < 400; i++) {
        many[i] = i ? 494 + i * 31 % 139 : 2;
    }
    CHECK(prefill(s, many, 200, 0, NULL, &err) == BZ_OK &&
          prefill(s, many, 400, 0, NULL, &err) == BZ_OK);
    CHECK(prefill(fresh, many, 400, 0, NULL, &err) == BZ_OK);
    d = max_difference(bz_session_logits(s), bz_session_logits(fresh), vocab);
    CHECKF(d <= 1e-3, "off by %g", d);
    free(many);
    bz_session_free(s);
    bz_session_free(fresh);
    bz_model_free(m);
}

int main(void)
{
    test_golden("e-like (llama.cpp layout)", golden_path("e-like/text.gguf"),
                golden_path("e-like/golden.gguf"), false);
    test_golden("e-like (Ollama layout)", model_path("e-like-whole.gguf"),
                golden_path("e-like/golden.gguf"), true);
    test_golden("moe-like", golden_path("moe-like/text.gguf"), golden_path("moe-like/golden.gguf"),
                false);
    test_golden("moe-like (early Ollama layout)", model_path("moe-like-early.gguf"),
                golden_path("moe-like/golden.gguf"), true);
    test_golden("dense-like", golden_path("dense-like/text.gguf"),
                golden_path("dense-like/golden.gguf"), false);
    test_golden("unified", golden_path("unified/text.gguf"), golden_path("unified/golden.gguf"),
                false);
    test_baseline("e-like", golden_path("e-like/text.gguf"), golden_path("e-like/golden.gguf"));
    test_baseline("moe-like", golden_path("moe-like/text.gguf"),
                  golden_path("moe-like/golden.gguf"));
    test_baseline("dense-like", golden_path("dense-like/text.gguf"),
                  golden_path("dense-like/golden.gguf"));
    test_types();
    test_fusing("nano-e-f32.gguf", true);
    test_fusing("tiny-moe-q4_k_m.gguf", true);
    test_fusing("tiny-12b-q4_k_m.gguf", true);
    test_fusing("tiny-e-q4_k_m.gguf", false);
    test_fusing("tiny-e-q5_k_m.gguf", false);
    test_fusing("tiny-dense-q6_k.gguf", false);
    test_fusing("nano-moe-q8_0.gguf", false);
    test_reuse();
    return finish();
}
