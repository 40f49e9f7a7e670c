#include "support/clusters.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/session.h"
#include "support/check.h"
#include "support/drafter.h"
#include "support/edited.h"
#include "support/forward.h"
#include "support/random.h"

enum { LOOKED_THROUGH = 32, DRAFTS = 3, MAX_VOCAB = 1024, MAX_WIDTH = 64 };

/* A permutation: the stride is a prime that divides no vocabulary here. */
static uint32_t token_at(uint64_t place, uint64_t vocab)
{
    return (uint32_t)((place * 7919 + 5) % vocab);
}

static void add_clusters(gguf_build *b, uint64_t width, uint64_t vocab, const cluster_options *o)
{
    const bool wide = o->ids == BZ_I64;
    float *centroids = calloc(width * o->clusters, sizeof *centroids);
    int32_t *ids = calloc(2 * vocab, sizeof *ids);
    random_seed(21);
    for (uint64_t i = 0; i < width * o->clusters && !o->equal_centroids; i++) {
        centroids[i] = random_float();
    }
    for (uint64_t i = 0; i < vocab; i++) {
        ids[wide ? 2 * i : i] = (int32_t)token_at(i, vocab);
    }
    gb_tensor(b, "masked_embd_centroids.weight", BZ_F32, 2, (uint64_t[]){width, o->clusters},
              centroids);
    gb_tensor(b, "masked_embd_ordering", o->ids, 1, &vocab, ids);
    free(centroids);
    free(ids);
}

void build_clustered(gguf_build *b, const char *drafter, const cluster_options *o)
{
    golden from;
    golden_open(&from, drafter);
    gb_init(b);
    for (size_t i = 0; i < from.gguf.n_kv; i++) {
        copy_key(b, &from.gguf.kv[i]);
    }
    for (size_t i = 0; i < from.gguf.n_tensors; i++) {
        const bz_gguf_tensor *t = &from.gguf.tensors[i];
        const bool head = bz_str_is(t->name, "token_embd.weight");
        gb_tensor_raw(b, t->name.data, t->name.len, t->type, t->n_dims, t->ne,
                      head && o->equal_head ? NULL : from.map.data + t->offset);
        if (head) {
            add_clusters(b, t->ne[0], t->ne[1], o);
        }
    }
    gb_finish(b);
    golden_close(&from);
}

static int on_read(void *user, const bz_read *r)
{
    const clustered *c = user;
    const uint8_t *file = r->file == 0 ? c->drafter.bytes : c->model.data;
    memcpy(r->to, file + r->offset, r->length);
    return 0;
}

void open_clustered(clustered *c, const char *model, const char *drafter, const cluster_options *o,
                    const char *device)
{
    const bz_open_options options = {.size = sizeof options, .device = device};
    bz_job *job = NULL;
    bz_error err = {0};
    *c = (clustered){0};
    build_clustered(&c->drafter, drafter, o);
    bz_status status = bz_os_map_file(model, &c->model, &err);
    const bz_input inputs[] = {
        {"drafter.gguf", c->drafter.size, o->by_reads ? NULL : c->drafter.bytes},
        {"m.gguf", c->model.size, o->by_reads ? NULL : c->model.data}};
    const bz_host host = {.size = sizeof host, .read = on_read, .user = c};
    status = status == BZ_OK ? bz_model_open(&job, inputs, 2, &options, &err) : status;
    status = status == BZ_OK ? bz_job_run(job, &host, &err) : status;
    if (!CHECKF(status == BZ_OK, "%s", err.text)) {
        exit(finish());
    }
    c->m = bz_job_model(job);
    bz_job_free(job);
}

void close_clustered(clustered *c)
{
    bz_model_free(c->m);
    gb_free(&c->drafter);
    bz_os_unmap(&c->model);
}

/* ---- the reference --------------------------------------------------------------------------- */

typedef struct watch {
    golden file; /* the drafter's */
    const cluster_options *o;
    double bound;
    uint32_t vocab, width, seen, drafts;
    double z[MAX_WIDTH];
    double of_cluster[MAX_VOCAB], of_token[MAX_VOCAB];
    uint32_t top[LOOKED_THROUGH], n_top;
} watch;

/* A row of a tensor of the drafter times z. */
static double product(const watch *w, const char *name, uint32_t row)
{
    const bz_gguf_tensor *t = bz_gguf_find_tensor(&w->file.gguf, name);
    float values[MAX_WIDTH];
    double sum = 0;
    bz_dequantize((bz_type)t->type,
                  w->file.map.data + t->offset + row * bz_row_bytes((bz_type)t->type, w->width),
                  values, w->width);
    for (uint32_t i = 0; i < w->width; i++) {
        sum += (double)values[i] * w->z[i];
    }
    return sum;
}

/* Everything that follows from z. */
static void compute(watch *w)
{
    const uint32_t n = w->o->clusters, each = w->vocab / n;
    bool taken[MAX_VOCAB] = {false};
    for (uint32_t c = 0; c < n; c++) {
        w->of_cluster[c] = product(w, "masked_embd_centroids.weight", c);
    }
    for (uint32_t i = 0; i < w->vocab; i++) {
        w->of_token[i] = -INFINITY;
    }
    w->n_top = n < LOOKED_THROUGH ? n : LOOKED_THROUGH;
    for (uint32_t k = 0; k < w->n_top; k++) {
        uint32_t best = n;
        for (uint32_t c = 0; c < n; c++) {
            if (!taken[c] && (best == n || w->of_cluster[c] > w->of_cluster[best])) {
                best = c;
            }
        }
        taken[best] = true;
        w->top[k] = best;
        for (uint32_t j = 0; j < each; j++) {
            const uint32_t id = token_at((uint64_t)best * each + j, w->vocab);
            w->of_token[id] = product(w, "token_embd.weight", id);
        }
    }
}

/* NaN stays. Not fmax, with which GCC 12 fails to compile the loops for arm64. */
static double larger(double worst, double difference)
{
    return isnan(worst) || fabs(difference) <= worst ? worst : fabs(difference);
}

static void on_trace(void *user, const bz_step *step, int output, const void *values, uint32_t rows,
                     uint32_t cols, uint32_t stride)
{
    watch *w = user;
    const float *x = values;
    const uint32_t each = w->vocab / w->o->clusters;
    double worst = 0;
    (void)output;
    (void)rows;
    (void)stride;
    if (strcmp(step->name, "draft_norm") == 0) {
        for (uint32_t i = 0; i < cols; i++) {
            w->z[i] = (double)x[i];
        }
        compute(w);
    } else if (strcmp(step->name, "draft_centroids") == 0) {
        CHECK(cols == w->o->clusters);
        for (uint32_t i = 0; i < cols; i++) {
            worst = larger(worst, (double)x[i] - w->of_cluster[i]);
        }
        CHECKF(worst <= w->bound, "logits of clusters off by %g", worst);
        w->seen++;
    } else if (strcmp(step->name, "draft_clusters") == 0) {
        CHECK(cols == w->n_top);
        for (uint32_t i = 0; i < cols; i++) {
            CHECKF((uint32_t)x[i] == w->top[i], "cluster %u is %g instead of %u", i, (double)x[i],
                   w->top[i]);
        }
        w->seen++;
    } else if (strcmp(step->name, "draft_list") == 0) {
        CHECK(cols == w->n_top * each);
        for (uint32_t i = 0; i < cols; i++) {
            const uint32_t id = token_at((uint64_t)w->top[i / each] * each + i % each, w->vocab);
            CHECKF((uint32_t)x[i] == id, "token %u is %g instead of %u", i, (double)x[i], id);
        }
        w->seen++;
    } else if (strcmp(step->name, "draft_head") == 0) {
        CHECK(cols == w->n_top * each);
        for (uint32_t i = 0; i < cols; i++) {
            const uint32_t id = token_at((uint64_t)w->top[i / each] * each + i % each, w->vocab);
            worst = larger(worst, (double)x[i] - w->of_token[id]);
        }
        CHECKF(worst <= w->bound, "logits off by %g", worst);
        w->seen++;
    } else if (strcmp(step->name, "draft") == 0) {
        uint32_t best = 0;
        for (uint32_t i = 1; i < w->vocab; i++) {
            best = w->of_token[i] > w->of_token[best] ? i : best;
        }
        CHECKF((uint32_t)x[w->drafts] == best, "draft %u is %g instead of %u", w->drafts,
               (double)x[w->drafts], best);
        w->drafts++;
    }
}

void check_clusters(const char *device, const bz_session_options *options, const cluster_options *o,
                    double bound)
{
    static watch w;
    golden g;
    clustered c;
    size_t n = 0, one = 0;
    uint64_t at_least;
    bz_error err = {0};
    char drafter[300];
    int32_t traced[DRAFTS];
    golden_open(&g, golden_path("assistant/golden.gguf"));
    snprintf(drafter, sizeof drafter, "%s", golden_path("assistant/assistant.gguf"));
    open_clustered(&c, golden_path("dense-like/text.gguf"), drafter, o, device);
    w = (watch){.o = o, .bound = bound, .file.map.data = c.drafter.bytes};
    CHECK(bz_gguf_parse(&w.file.gguf, c.drafter.bytes, c.drafter.size, c.drafter.size, &at_least,
                        &err) == BZ_GGUF_DONE);
    const bz_gguf_tensor *head = bz_gguf_find_tensor(&w.file.gguf, "token_embd.weight");
    w.width = (uint32_t)head->ne[0];
    w.vocab = (uint32_t)head->ne[1];
    CHECK(w.width <= MAX_WIDTH && w.vocab <= MAX_VOCAB);
    bz_session *s = session_or_fail(c.m, options);
    const int32_t *tokens = golden_i32(&g, &n, "tokens");
    CHECKF(prefill(s, tokens, n, 0, NULL, &err) == BZ_OK, "%s", err.text);
    s->tokens[s->n] = *golden_i32(&g, &one, "start_token");
    s->backend->set_trace(s->backend, on_trace, &w);
    CHECKF(run_draft(s, DRAFTS, &err) == BZ_OK, "%s", err.text);
    s->backend->set_trace(s->backend, NULL, NULL);
    CHECKF(w.seen == 4 * DRAFTS && w.drafts == DRAFTS, "%u tensors and %u drafts compared", w.seen,
           w.drafts);
    memcpy(traced, s->tokens + s->n + 1, sizeof traced);
    CHECKF(run_draft(s, DRAFTS, &err) == BZ_OK, "%s", err.text); /* fused */
    CHECK(memcmp(traced, s->tokens + s->n + 1, sizeof traced) == 0);
    for (uint32_t i = 0; i < DRAFTS && o->clusters <= LOOKED_THROUGH && !o->equal_head; i++) {
        CHECKF(traced[i] == *golden_i32(&g, &one, "step.%u.token", i),
               "draft %u of all tokens is %d", i, traced[i]);
    }
    bz_session_free(s);
    bz_gguf_free(&w.file.gguf);
    close_clustered(&c);
    golden_close(&g);
}
