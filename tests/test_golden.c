/* The text model against Hugging Face's outputs: logits, greedy text and intermediate tensors, in
 * both file layouts, whole and in chunks. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/session.h"
#include "support/check.h"
#include "support/forward.h"
#include "support/golden.h"

/* ---- inner tensors, by way of the trace hook ------------------------------------- */

typedef struct watch {
    const golden *g;
    bz_session *s;
    unsigned seen; /* rows compared */
} watch;

static void compare_rows(watch *w, const char *name, const float *got, uint32_t rows, uint32_t cols,
                         uint32_t stride, double bound)
{
    size_t n;
    const float *want = golden_f32(w->g, &n, "%s", name);
    if (!want) {
        return;
    }
    for (uint32_t r = 0; r < rows; r++) {
        double d =
            max_difference(got + (size_t)r * stride, want + (size_t)(w->s->n + r) * cols, cols);
        CHECKF(d <= bound, "%s row %u: off by %g", name, w->s->n + r, d);
        w->seen++;
    }
}

static void compare_experts(watch *w, const bz_step *step, int output, const void *values,
                            uint32_t rows, uint32_t k, uint32_t stride)
{
    size_t n;
    const int32_t *want_id = golden_i32(w->g, &n, "text.2.expert_index.%d", step->layer);
    const float *want_share = golden_f32(w->g, &n, "text.2.expert_weight.%d", step->layer);
    bz_weight scale = w->s->model->text.weights.layer[step->layer].expert_scale;
    for (uint32_t r = 0; want_id && r < rows; r++) {
        for (uint32_t i = 0; i < k; i++) {
            size_t at = (size_t)(w->s->n + r) * k + i;
            if (output == 0) {
                CHECKF(((const int32_t *)values)[r * stride + i] == want_id[at], "layer %d: expert",
                       step->layer);
            } else { /* the reference folds the expert's own scale into its weight */
                float s;
                memcpy(&s, w->s->model->weight_bytes[scale.id - 1] + 4 * want_id[at], sizeof s);
                double d = fabs((double)((const float *)values)[r * stride + i] * (double)s -
                                (double)want_share[at]);
                CHECKF(d <= 1e-4, "layer %d: share off by %g", step->layer, d);
            }
            w->seen++;
        }
    }
}

static void on_trace(void *user, const bz_step *step, int output, const void *values, uint32_t rows,
                     uint32_t cols, uint32_t stride)
{
    watch *w = user;
    char name[64];
    double bound = 1e-4;
    if (strcmp(step->name, "router") == 0) {
        compare_experts(w, step, output, values, rows, cols, stride);
        return;
    }
    if (strcmp(step->name, "logits") == 0) {
        return; /* compared at their own bound */
    }
    if (strcmp(step->name, "final_norm") == 0) {
        bound = 1e-3; /* its values are ten times the others' */
    }
    if (step->layer >= 0) {
        snprintf(name, sizeof name, "text.2.%s.%d", step->name, step->layer);
    } else {
        snprintf(name, sizeof name, "text.2.%s", step->name);
    }
    compare_rows(w, name, values, rows, cols, stride, bound);
}

/* ---- cases ------------------------------------------------------------------------- */

static unsigned expected_rows(const golden *g)
{
    /* every row of every intermediate tensor of the file must have been compared */
    unsigned rows = 0;
    for (size_t i = 0; i < g->gguf.n_tensors; i++) {
        const bz_gguf_tensor *t = &g->gguf.tensors[i];
        char name[200];
        snprintf(name, sizeof name, "%.*s", (int)t->name.len, t->name.data);
        bool outer = strstr(name, "tokens") || strstr(name, "logits") || strstr(name, "greedy");
        if (strncmp(name, "text.2.", 7) == 0 && !outer) {
            rows += (unsigned)(strstr(name, "expert_") ? t->ne[0] * t->ne[1] : 48);
        }
    }
    return rows;
}

static void run_case(const char *what, const char *model_name, const char *golden_name,
                     uint32_t chunk, const char *kernels)
{
    golden g;
    golden_open(&g, golden_name);
    bz_model *m = open_or_fail(model_name);
    uint32_t vocab = bz_model_vocab(m);
    bz_session_options o = {
        .size = sizeof o, .exact = true, .chunk = chunk, .kernels = kernels, .threads = 2};
    for (int k = 0; k < 3; k++) {
        begin("%s prompt %d chunk %u%s%s", what, k, chunk, kernels ? " kernels " : "",
              kernels ? kernels : "");
        size_t n, n_logits, n_greedy;
        const int32_t *ids = golden_i32(&g, &n, "text.%d.tokens", k);
        const float *want = golden_f32(&g, &n_logits, "text.%d.logits", k);
        const int32_t *greedy = golden_i32(&g, &n_greedy, "text.%d.greedy", k);
        if (!CHECK(ids && want && n_logits == n * vocab)) {
            continue;
        }
        bz_session *s = session_or_fail(m, &o);
        watch w = {&g, s, 0};
        if (k == 2) {
            s->backend->set_trace(s->backend, on_trace, &w);
        }
        float *logits = calloc(n * vocab, sizeof *logits);
        bz_error err = {0};
        CHECKF(prefill(s, ids, n, 0, logits, &err) == BZ_OK, "%s", err.text);
        s->backend->set_trace(s->backend, NULL, NULL);
        double d = max_difference(logits, want, n * vocab);
        CHECKF(d <= 1e-3, "logits off by %g", d);
        if (k == 2) {
            CHECKF(w.seen == expected_rows(&g), "%u inner rows compared, the file has %u", w.seen,
                   expected_rows(&g));
        }
        if (greedy) {
            int32_t got[16] = {0};
            size_t made = generate(s, got, n_greedy);
            CHECK(made == n_greedy && memcmp(got, greedy, n_greedy * sizeof *got) == 0);
        }
        free(logits);
        bz_session_free(s);
    }
    bz_model_free(m);
    golden_close(&g);
}

/* What each type of KV cache adds to the error: f32 activations, the root mean square of the
 * logits' error over that of the logits, all 48 positions. Random models with heads of 16 and 32
 * amplify rounding: trained ones do less. */
static void run_cache(const char *name, const char *model_name, const char *golden_name,
                      const double bounds[3])
{
    static const char *const types[] = {"f16", "q8", "q4"};
    golden g;
    golden_open(&g, golden_name);
    bz_model *m = open_or_fail(model_name);
    size_t n, n_logits;
    const int32_t *ids = golden_i32(&g, &n, "text.2.tokens");
    const float *want = golden_f32(&g, &n_logits, "text.2.logits");
    float *logits = malloc(n_logits * sizeof *logits);
    double last = 0;
    for (int t = 0; t < 3; t++) {
        begin("%s with keys and values in %s", name, types[t]);
        bz_error err = {0};
        bz_session *s = session_or_fail(m, &(bz_session_options){.size = sizeof(bz_session_options),
                                                                 .exact = true,
                                                                 .kv = types[t],
                                                                 .threads = 2});
        CHECKF(prefill(s, ids, n, 0, logits, &err) == BZ_OK, "%s", err.text);
        double sum = 0, error = 0;
        for (size_t i = 0; i < n_logits; i++) {
            const double d = (double)logits[i] - (double)want[i];
            sum += (double)want[i] * (double)want[i];
            error += d * d;
        }
        const double relative = sqrt(error / sum);
        printf("  %s: %.2g\n", types[t], relative);
        CHECKF(relative > last && relative < bounds[t], "off by %g", relative);
        last = relative;
        bz_session_free(s);
    }
    free(logits);
    bz_model_free(m);
    golden_close(&g);
}

int main(void)
{
    /* Short runs are for another instruction set: test_kernels has odd numbers of rows there, and
     * the layouts are read by the same code. */
    static const uint32_t chunks[] = {1, 512, 7};
    const bool short_run = quick_run();
    for (int i = 0; i < (short_run ? 2 : 3); i++) {
        run_case("e-like (llama.cpp layout)", golden_path("e-like/text.gguf"),
                 golden_path("e-like/golden.gguf"), chunks[i], NULL);
        run_case("moe-like (llama.cpp layout)", golden_path("moe-like/text.gguf"),
                 golden_path("moe-like/golden.gguf"), chunks[i], NULL);
        if (!short_run) {
            run_case("e-like (Ollama layout)", model_path("e-like-whole.gguf"),
                     golden_path("e-like/golden.gguf"), chunks[i], NULL);
            run_case("moe-like (early Ollama layout)", model_path("moe-like-early.gguf"),
                     golden_path("moe-like/golden.gguf"), chunks[i], NULL);
        }
        run_case("dense-like", golden_path("dense-like/text.gguf"),
                 golden_path("dense-like/golden.gguf"), chunks[i], NULL);
        run_case("unified", golden_path("unified/text.gguf"), golden_path("unified/golden.gguf"),
                 chunks[i], NULL);
    }
    run_cache("e-like", golden_path("e-like/text.gguf"), golden_path("e-like/golden.gguf"),
              (double[]){2e-3, 0.05, 0.6});
    run_cache("moe-like", golden_path("moe-like/text.gguf"), golden_path("moe-like/golden.gguf"),
              (double[]){3e-3, 0.12, 0.9});
    run_cache("dense-like", golden_path("dense-like/text.gguf"),
              golden_path("dense-like/golden.gguf"), (double[]){2e-3, 0.04, 0.5});
    run_cache("unified", golden_path("unified/text.gguf"), golden_path("unified/golden.gguf"),
              (double[]){2e-3, 0.04, 0.5});
    run_case("e-like", golden_path("e-like/text.gguf"), golden_path("e-like/golden.gguf"), 512,
             "plain");
    run_case("moe-like", golden_path("moe-like/text.gguf"), golden_path("moe-like/golden.gguf"),
             512, "plain");
    return finish();
}
