/* Every block type against float64: exact arithmetic within 1e-3, and 8-bit activations no
 * further off than llama.cpp is on the same file. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/forward.h"
#include "support/golden.h"
#include "support/synth.h"

static double rms_of(const double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += x[i] * x[i];
    }
    return sqrt(sum / (double)n);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of(double *x, size_t n)
{
    qsort(x, n, sizeof *x, by_size);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

/* Files that differ in their seed only ("NAME", "NAME-s2", ...) are judged together: where an
 * expert flips in one random MoE is chance, for llama.cpp as for us. */
typedef struct group {
    char name[64];
    double log_ratio;
    int files;
} group;

static group groups[64];
static int n_groups;

static void add_ratio(const char *name, double ratio)
{
    char base[64];
    snprintf(base, sizeof base, "%s", name);
    char *seed = strstr(base, "-s");
    if (seed && seed[2] >= '0' && seed[2] <= '9') {
        *seed = 0;
    }
    int g = 0;
    while (g < n_groups && strcmp(groups[g].name, base) != 0) {
        g++;
    }
    if (g == n_groups) {
        snprintf(groups[n_groups++].name, sizeof groups[0].name, "%s", base);
    }
    groups[g].log_ratio += log(ratio);
    groups[g].files++;
}

static float *all_logits(const bz_model *m, const synth_entry *e, bool exact, uint32_t chunk)
{
    const bz_session_options o = {.exact = exact, .chunk = chunk, .threads = 2};
    bz_session *s = session_or_fail(m, &o);
    float *out = calloc(e->n_tokens * e->vocab, sizeof *out);
    bz_error err = {0};
    CHECKF(prefill(s, e->tokens, e->n_tokens, 0, out, &err) == BZ_OK, "%s", err.text);
    bz_session_free(s);
    return out;
}

static void check_model(const synth_entry *e)
{
    char path[128];
    snprintf(path, sizeof path, "%s.gguf", e->name);
    bz_model *m = open_or_fail(model_path(path));
    size_t n, columns = (e->vocab + e->stride - 1) / e->stride;

    begin("%s exact", e->name);
    snprintf(path, sizeof path, "synth/%s.ref.f32", e->answer);
    float *rows = read_f32(golden_path(path), &n);
    CHECK(n == e->n_positions * e->vocab);
    snprintf(path, sizeof path, "synth/%s.all.f32", e->answer);
    float *sample = read_f32(golden_path(path), &n);
    CHECK(n == e->n_tokens * columns);
    float *got = all_logits(m, e, true, 512);
    for (size_t i = 0; i < e->n_positions; i++) {
        double d = max_difference(got + (size_t)e->positions[i] * e->vocab, rows + i * e->vocab, e->vocab);
        CHECKF(d <= 1e-3, "position %u off by %g", e->positions[i], d);
    }
    for (size_t t = 0; t < e->n_tokens; t++) {
        for (size_t c = 0; c < columns; c++) {
            double d = fabs((double)got[t * e->vocab + c * e->stride] - (double)sample[t * columns + c]);
            CHECKF(d <= 1e-3, "position %zu logit %zu off by %g", t, c * e->stride, d);
        }
    }
    free(got);

    got = all_logits(m, e, false, 512);
    double *error = malloc(e->n_tokens * columns * sizeof *error), *by_row = malloc(e->n_tokens * sizeof *by_row);
    for (size_t t = 0; t < e->n_tokens; t++) {
        for (size_t c = 0; c < columns; c++) {
            error[t * columns + c] = (double)got[t * e->vocab + c * e->stride] - (double)sample[t * columns + c];
        }
        by_row[t] = rms_of(error + t * columns, columns);
    }
    /* an expert that flips moves a whole row, so for them the middle row counts */
    bool moe = strstr(e->preset, "moe") != NULL;
    double ours = moe ? median_of(by_row, e->n_tokens) : rms_of(error, e->n_tokens * columns);
    double theirs = moe ? e->peer_median : e->peer_rms;
    printf("  %s: %s %.4f, llama.cpp %.4f, ratio %.2f\n", e->name, moe ? "median" : "rms", ours, theirs, ours / theirs);
    CHECK(isfinite(ours));
    add_ratio(e->name, ours / theirs);
    free(error);
    free(by_row);
    free(got);
    free(rows);
    free(sample);
    bz_model_free(m);
}

int main(void)
{
    synth_file f;
    synth_entry e;
    int models = 0;
    synth_open(&f);
    while (synth_next(&f, &e)) {
        models++;
        if (!quick_run() || strncmp(e.name, "nano", 4) == 0) {
            check_model(&e);
        }
    }
    synth_close(&f);
    for (int g = 0; g < n_groups; g++) {
        double ratio = exp(groups[g].log_ratio / groups[g].files);
        begin("%s with 8-bit activations: error against llama.cpp's", groups[g].name);
        CHECKF(ratio <= 1.1, "%.2f times llama.cpp's over %d files", ratio, groups[g].files);
    }
    begin("every block type has a model");
    CHECKF(models >= 45, "%d models", models);
    return finish();
}
