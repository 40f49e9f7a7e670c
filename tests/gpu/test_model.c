/* Whole models on the GPU: against Hugging Face's outputs, against float64 for every block type,
 * and against the CPU. A missing adapter fails. BEZEL_ONLY=PART omits models whose name does not
 * contain PART. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/session.h"
#include "support/check.h"
#include "support/devices.h"
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

/* Logits of all rows, of which the last TAIL are decoded: passes of one row. */
static float *gpu_decoded_logits(const bz_model *m, const int32_t *ids, size_t n)
{
    enum { TAIL = 8 };
    bz_session *s = gpu_session(m, true, 512);
    float *out = calloc(n * bz_model_vocab(m), sizeof *out); /* [n][vocab] */
    bz_error err = {0};
    for (size_t end = n - TAIL; end <= n; end++) {
        CHECKF(prefill(s, ids, end, 0, out, &err) == BZ_OK, "%s", err.text);
    }
    bz_session_free(s);
    return out;
}

/* ---- Hugging Face ------------------------------------------------------------------- */

/* Frees `got`. */
static void check_logits(float *got, const float *want, size_t n)
{
    double d = max_difference(got, want, n);
    CHECKF(d <= 2e-3, "logits off by %g", d);
    free(got);
}

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
    const gpu_limits *l = gpu_limits_of(bz_model_device(m));
    begin("gpu baseline %s chunk 512", name);
    CHECK(!l->f16 && !l->subgroups && l->max_binding == 128u << 20 &&
          l->max_workgroup_storage == 16384);
    check_logits(gpu_logits(m, true, 512, ids, n), want, n * vocab);
    begin("gpu baseline %s decoded", name);
    check_logits(gpu_decoded_logits(m, ids, n), want, n * vocab);
    if (!quick_run()) {
        begin("gpu baseline %s chunk 1", name);
        check_logits(gpu_logits(m, true, 1, ids, n), want, n * vocab);
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
        begin("gpu %s prompt %d chunk 512", name, k);
        check_logits(gpu_logits(m, true, 512, ids, n), want, n * vocab);
        if (k == 2 && !same_weights) {
            begin("gpu %s prompt %d decoded", name, k);
            check_logits(gpu_decoded_logits(m, ids, n), want, n * vocab);
            begin("gpu %s prompt %d chunk 7", name, k);
            check_logits(gpu_logits(m, true, 7, ids, n), want, n * vocab);
        }
        if (k == 2 && !same_weights && !quick_run()) {
            begin("gpu %s prompt %d chunk 1", name, k);
            check_logits(gpu_logits(m, true, 1, ids, n), want, n * vocab);
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

static bool is_among(const char *name, const char *const *list)
{
    while (*list && strcmp(name, *list) != 0) {
        list++;
    }
    return *list != NULL;
}

/* A short run takes every preset and a block type of each kind (floats, 4 and 5 bits with minimum,
 * K types, a table of values, MXFP4): a software adapter takes seconds to compile a GPU's kernels
 * of a type, and test_kernels.c and test_experts.c load each of them and compare it with the CPU.
 * Files that differ in seed or layout are omitted: test_golden has the layouts. */
static bool in_this_run(const char *name)
{
    static const char *const files[] = {
        "nano-e-f32",      "nano-e-bf16",     "nano-e-q8_0",       "nano-moe-f32",
        "nano-moe-q8_0",   "nano-dense-f32",  "nano-12b-f32",      "tiny-e-q5_1",
        "tiny-e-q2_k",     "tiny-e-mxfp4",    "tiny-e-q4_k-loose", "tiny-e-q4_k_m",
        "tiny-moe-q4_k_m", "tiny-moe-iq4_xs", "tiny-12b-q4_k_m",   NULL};
    return !quick_run() || is_among(name, files);
}

/* With int8 activations and with an f16 cache a file of each kind of integers is run. A short run
 * takes three, and a GPU's kernels for these only: test_kernels.c compares int8 products of every
 * type with the CPU's, whose errors test_synth.c compares with llama.cpp's for every file. */
static bool is_chosen(const char *name)
{
    static const char *const all[] = {
        "nano-e-q8_0",   "nano-moe-q8_0",   "tiny-e-q4_0",     "tiny-e-q4_k_m",
        "tiny-e-q5_k_m", "tiny-dense-q6_k", "tiny-moe-q4_k_m", NULL};
    static const char *const few[] = {"nano-e-q8_0", "tiny-e-q4_k_m", "tiny-moe-q4_k_m", NULL};
    return is_among(name, quick_run() ? few : all);
}

static void test_types(void)
{
    synth_file f;
    synth_entry e;
    synth_open(&f);
    while (synth_next(&f, &e)) {
        if (!wants(e.name) || !in_this_run(e.name)) {
            continue;
        }
        char path[128], file[80];
        size_t n;
        snprintf(file, sizeof file, "%s.gguf", e.name);
        devices_count_as(quick_run() && !is_chosen(e.name) ? DEVICES_SEQUENTIAL : DEVICES_PARALLEL);
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
    devices_count_as(DEVICES_PARALLEL);
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

enum { MANY_ROWS, ONE_ROW, PASS_KINDS };

typedef struct fusing_result {
    float *logits; /* [tokens][vocab] */
    uint64_t dispatches[PASS_KINDS];
} fusing_result;

enum { FIRST_DECODED = 3, PREFILLED = 40, FUSING_TOKENS = 46 };

/* Decodes tokens, prefills up to position PREFILLED, past the windows of the models, and decodes
 * again there. */
static fusing_result run_fused_or_plain(const bz_model *m, bool exact, bool plain)
{
    const bz_session_options o = {.size = sizeof o, .exact = exact, .chunk = 512, .no_fuse = plain};
    bz_session *s = session_or_fail(m, &o);
    fusing_result r = {.logits = calloc((size_t)FUSING_TOKENS * bz_model_vocab(m), sizeof(float))};
    int32_t ids[FUSING_TOKENS];
    for (int i = 0; i < FUSING_TOKENS; i++) {
        ids[i] = i ? 494 + i * 37 % 139 : 2;
    }
    for (uint32_t at = 0, end; at < FUSING_TOKENS; at = end) {
        end = at == FIRST_DECODED ? PREFILLED : at + 1;
        uint64_t before = gpu_counts_of(bz_model_device(m)).dispatches;
        bz_error err = {0};
        CHECKF(prefill(s, ids, end, 0, r.logits, &err) == BZ_OK, "%s", err.text);
        r.dispatches[end == at + 1 ? ONE_ROW : MANY_ROWS] +=
            gpu_counts_of(bz_model_device(m)).dispatches - before;
    }
    bz_session_free(s);
    return r;
}

static void test_fusing(const char *file, bool exact)
{
    if (!wants(file)) {
        return;
    }
    static const uint32_t ranges[][2] = {
        {0, FIRST_DECODED}, {FIRST_DECODED, PREFILLED}, {PREFILLED, FUSING_TOKENS}};
    begin("gpu %s%s: the fused list has the plain list's results, with fewer dispatches", file,
          exact ? "" : ", 8-bit activations");
    bz_model *m = open_on_or_fail(model_path(file), "gpu");
    const uint32_t vocab = bz_model_vocab(m);
    fusing_result fused = run_fused_or_plain(m, exact, false),
                  plain = run_fused_or_plain(m, exact, true);
    for (int i = 0; i < 3; i++) {
        const uint32_t first = ranges[i][0], n = ranges[i][1] - first;
        const float *a = fused.logits + first * vocab, *b = plain.logits + first * vocab;
        /* a rounding that tips over moves an activation by 1/127, and one near a choice of experts
         * a whole row */
        double d = exact ? max_difference(a, b, n * vocab) : middle_difference(a, b, n, vocab);
        printf("  from token %u off by %g\n", first, d);
        CHECKF(d <= (exact ? 1e-4 : 0.2), "from token %u off by %g", first, d);
    }
    for (int kind = 0; kind < PASS_KINDS; kind++) {
        printf("  fused %llu dispatches, plain %llu\n", (unsigned long long)fused.dispatches[kind],
               (unsigned long long)plain.dispatches[kind]);
        CHECK(fused.dispatches[kind] < plain.dispatches[kind]);
    }
    free(fused.logits);
    free(plain.logits);
    bz_model_free(m);
}

/* ---- sessions -------------------------------------------------------------------------- */

/* What a session reuses must not matter here either; sums keep their order on one device, so the
 * logits agree closely (row and tile kernels add up in different orders). */
static void test_reuse(void)
{
    if (!wants("nano-e-q8_0 sessions")) {
        return;
    }
    bz_model *m = open_on_or_fail(model_path("nano-e-q8_0.gguf"), "gpu");
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
    enum { FIRST_SIZE = 256, GROWN = FIRST_SIZE + 16 };
    int32_t many[GROWN];
    for (int i = 0; i < GROWN; i++) {
        many[i] = i ? 494 + i * 31 % 139 : 2;
    }
    CHECK(prefill(s, many, FIRST_SIZE - 16, 0, NULL, &err) == BZ_OK);
    uint64_t bytes = bz_session_get_stats(s).cache_bytes;
    CHECK(prefill(s, many, GROWN, 0, NULL, &err) == BZ_OK);
    CHECK(bz_session_get_stats(s).cache_bytes > bytes);
    CHECK(prefill(fresh, many, GROWN, 0, NULL, &err) == BZ_OK);
    d = max_difference(bz_session_logits(s), bz_session_logits(fresh), vocab);
    CHECKF(d <= 1e-3, "off by %g", d);
    bz_session_free(s);
    bz_session_free(fresh);
    bz_model_free(m);
}

int main(void)
{
    devices_keep();
    test_golden("e-like (llama.cpp layout)", golden_path("e-like/text.gguf"),
                golden_path("e-like/golden.gguf"), false);
    test_golden("moe-like", golden_path("moe-like/text.gguf"), golden_path("moe-like/golden.gguf"),
                false);
    test_golden("dense-like", golden_path("dense-like/text.gguf"),
                golden_path("dense-like/golden.gguf"), false);
    test_golden("unified", golden_path("unified/text.gguf"), golden_path("unified/golden.gguf"),
                false);
    devices_count_as(DEVICES_SEQUENTIAL);
    test_golden("e-like, sequential", golden_path("e-like/text.gguf"),
                golden_path("e-like/golden.gguf"), false);
    test_golden("e-like (Ollama layout), sequential", model_path("e-like-whole.gguf"),
                golden_path("e-like/golden.gguf"), true);
    test_golden("moe-like, sequential", golden_path("moe-like/text.gguf"),
                golden_path("moe-like/golden.gguf"), false);
    test_golden("moe-like (early Ollama layout), sequential", model_path("moe-like-early.gguf"),
                golden_path("moe-like/golden.gguf"), true);
    test_golden("dense-like, sequential", golden_path("dense-like/text.gguf"),
                golden_path("dense-like/golden.gguf"), false);
    test_golden("unified, sequential", golden_path("unified/text.gguf"),
                golden_path("unified/golden.gguf"), false);
    test_reuse();
    devices_count_as(DEVICES_PARALLEL);
    test_baseline("e-like", golden_path("e-like/text.gguf"), golden_path("e-like/golden.gguf"));
    test_baseline("moe-like", golden_path("moe-like/text.gguf"),
                  golden_path("moe-like/golden.gguf"));
    test_types();
    test_fusing("nano-e-f32.gguf", true);
    test_fusing("tiny-moe-q4_k_m.gguf", true);
    test_fusing("tiny-12b-q4_k_m.gguf", true);
    test_fusing("tiny-e-q4_k_m.gguf", false);
    test_fusing("nano-moe-q8_0.gguf", false);
    if (!quick_run()) { /* the same steps and rules with other lengths */
        test_fusing("tiny-e-q5_k_m.gguf", false);
        test_fusing("tiny-dense-q6_k.gguf", false);
        test_baseline("dense-like", golden_path("dense-like/text.gguf"),
                      golden_path("dense-like/golden.gguf"));
    }
    return finish();
}
