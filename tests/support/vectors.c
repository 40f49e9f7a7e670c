#include "support/vectors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/forward.h"

bz_embedder *embedder_or_fail(const bz_model *m, const bz_embedder_options *o)
{
    bz_embedder *e = NULL;
    bz_error err = {0};
    if (bz_embedder_new(&e, m, o, &err) != BZ_OK) {
        printf("%s\nFAIL making an embedder\n", err.text);
        exit(1);
    }
    return e;
}

float *vectors_of(bz_embedder *e, const bz_embed_input *inputs, size_t n, const bz_embed_options *o,
                  uint32_t *d, bz_error *err)
{
    bz_job *job = NULL;
    float *copy = NULL;
    if (bz_embed_texts(e, inputs, n, o, &job, err) != BZ_OK) {
        return NULL;
    }
    if (bz_job_run(job, NULL, err) == BZ_OK) {
        size_t got;
        const float *v = bz_job_vectors(job, &got, d);
        CHECK(v && got == n);
        copy = malloc(n * *d * sizeof *copy);
        memcpy(copy, v, n * *d * sizeof *copy);
    }
    bz_job_free(job);
    return copy;
}

static void check_length(const float *v, uint32_t d)
{
    double sum = 0;
    for (uint32_t i = 0; i < d; i++) {
        sum += (double)v[i] * (double)v[i];
    }
    CHECKF(fabs(sum - 1) < 1e-5, "the length is %g", sqrt(sum));
}

static void compare(const golden *g, const float *v, uint32_t d, int k, uint32_t size,
                    const char *how, double bound)
{
    char name[40];
    size_t n;
    snprintf(name, sizeof name, d == size ? "emb.%d.embedding" : "emb.%d.embedding.%u", k, d);
    const float *want = golden_f32(g, &n, "%s", name);
    if (CHECKF(v && want && n == d, "%s: %s is not there", how, name)) {
        const double off = max_difference(v, want, d);
        CHECKF(off <= bound, "%s: %s is off by %g", how, name, off);
        check_length(v, d);
    }
}

void check_vectors(const golden *g, const bz_model *m, const bz_embedder_options *o, double bound)
{
    bz_embed_input in[GOLDEN_SEQUENCES] = {{0}};
    const uint32_t size = bz_model_embedding(m);
    bz_embedder *e = embedder_or_fail(m, o);
    bz_error err = {0};
    uint32_t d = 0;
    for (int k = 0; k < GOLDEN_SEQUENCES; k++) {
        in[k].ids = golden_i32(g, &in[k].n_ids, "emb.%d.tokens", k);
        if (quick_run() && k != 2 && k != 5) {
            continue;
        }
        float *v = vectors_of(e, &in[k], 1, NULL, &d, &err);
        compare(g, v, d, k, size, "alone", bound);
        free(v);
    }
    float *all = vectors_of(e, in, GOLDEN_SEQUENCES, NULL, &d, &err);
    for (int k = 0; k < GOLDEN_SEQUENCES && all; k++) {
        compare(g, all + (size_t)k * d, d, k, size, "together", bound);
    }
    CHECKF(all != NULL, "%s", err.text);
    free(all);
    unsigned cut = 0;
    for (uint32_t i = 1; i < size; i++) { /* the sizes that the data has */
        size_t n;
        if (golden_f32(g, &n, "emb.5.embedding.%u", i)) {
            const bz_embed_options shorter = {.size = sizeof shorter, .dimensions = i};
            float *v = vectors_of(e, &in[5], 1, &shorter, &d, &err);
            CHECK(d == i);
            compare(g, v, d, 5, size, "cut", bound);
            free(v);
            cut++;
        }
    }
    CHECK(cut >= 2);
    bz_embedder_free(e);
}
