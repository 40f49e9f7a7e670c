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

static float *all_logits(const bz_model *m, const synth_entry *e, bool exact, uint32_t chunk)
{
    const bz_session_options o = {.size = sizeof o, .exact = exact, .chunk = chunk, .threads = 2};
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
        double d =
            max_difference(got + (size_t)e->positions[i] * e->vocab, rows + i * e->vocab, e->vocab);
        CHECKF(d <= 1e-3, "position %u off by %g", e->positions[i], d);
    }
    for (size_t t = 0; t < e->n_tokens; t++) {
        for (size_t c = 0; c < columns; c++) {
            double d =
                fabs((double)got[t * e->vocab + c * e->stride] - (double)sample[t * columns + c]);
            CHECKF(d <= 1e-3, "position %zu logit %zu off by %g", t, c * e->stride, d);
        }
    }
    free(got);

    got = all_logits(m, e, false, 512);
    synth_judge(e, got, sample);
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
    synth_judge_all("");
    begin("every block type has a model");
    CHECKF(models >= 45, "%d models", models);
    return finish();
}
