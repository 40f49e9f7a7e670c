/* The trace hook on the GPU: the same steps, shapes and values as on the CPU, so that the first
 * step at which the GPU goes wrong can be found.
 *
 *   sh tools/gpu-env.sh build/tests/gpu/test_trace
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "encoder/encode.h"
#include "session/session.h"
#include "support/check.h"
#include "support/devices.h"
#include "support/forward.h"
#include "support/golden.h"
#include "support/media.h"
#include "support/parity.h"

/* One call of the hook. */
typedef struct record {
    const char *name;
    bz_op op;
    int32_t layer;
    int output;
    uint32_t rows, cols;
    float *values; /* [rows][cols] */
} record;

typedef struct records {
    record *list;
    size_t n;
} records;

static void on_trace(void *user, const bz_step *step, int output, const void *values, uint32_t rows,
                     uint32_t cols, uint32_t stride)
{
    records *r = user;
    r->list = realloc(r->list, (r->n + 1) * sizeof *r->list);
    record *to = &r->list[r->n++];
    *to = (record){.name = step->name,
                   .op = step->op,
                   .layer = step->layer,
                   .output = output,
                   .rows = rows,
                   .cols = cols,
                   .values = calloc((size_t)rows * cols + 1, sizeof(float))};
    const bool ids = step->op == BZ_OP_ROUTE && output == 0;
    for (uint32_t i = 0; i < rows; i++) {
        for (uint32_t c = 0; c < cols; c++) {
            const size_t at = (size_t)i * stride + c;
            to->values[(size_t)i * cols + c] =
                ids ? (float)((const int32_t *)values)[at] : ((const float *)values)[at];
        }
    }
}

static void free_records(records *r)
{
    for (size_t i = 0; i < r->n; i++) {
        free(r->list[i].values);
    }
    free(r->list);
}

static void compare(records *on_cpu, records *on_gpu, bound limit)
{
    CHECKF(on_cpu->n == on_gpu->n && on_cpu->n > 20, "%zu outputs on the CPU, %zu on the GPU",
           on_cpu->n, on_gpu->n);
    for (size_t i = 0; i < on_cpu->n && i < on_gpu->n; i++) {
        const record *a = &on_cpu->list[i], *b = &on_gpu->list[i];
        if (!CHECKF(strcmp(a->name, b->name) == 0 && a->op == b->op && a->layer == b->layer &&
                        a->output == b->output && a->rows == b->rows && a->cols == b->cols,
                    "output %zu is %s of layer %d, %u x %u on the CPU and %s of layer %d, %u x %u "
                    "on the GPU",
                    i, a->name, a->layer, a->rows, a->cols, b->name, b->layer, b->rows, b->cols) ||
            !within(b->values, a->values, a->rows, a->cols, limit, a->name)) {
            break; /* what follows is wrong too */
        }
    }
    free_records(on_cpu);
    free_records(on_gpu);
}

/* ---- text --------------------------------------------------------------------------------- */

static records trace_prompt(const char *path, const char *device, const int32_t *ids, size_t n,
                            bool *logits_equal)
{
    records r = {0};
    bz_error err = {0};
    bz_model *m = open_on_or_fail(path, device);
    bz_session *s = session_or_fail(
        m, &(bz_session_options){.size = sizeof(bz_session_options), .exact = true, .threads = 2});
    const size_t values = n * bz_model_vocab(m);
    float *with = calloc(values, sizeof *with), *without = calloc(values, sizeof *without);
    s->backend->set_trace(s->backend, on_trace, &r);
    CHECKF(prefill(s, ids, n, 0, with, &err) == BZ_OK, "%s", err.text);
    s->backend->set_trace(s->backend, NULL, NULL);
    bz_session_free(s);
    s = session_or_fail(
        m, &(bz_session_options){.size = sizeof(bz_session_options), .exact = true, .threads = 2});
    CHECKF(prefill(s, ids, n, 0, without, &err) == BZ_OK, "%s", err.text);
    *logits_equal = max_difference(with, without, values) < 1e-3;
    free(with);
    free(without);
    bz_session_free(s);
    bz_model_free(m);
    return r;
}

/* rows: of the prompt; one row is the list for decoding, more are that for prompts. */
static void test_text(const char *name, size_t rows)
{
    begin("%s, %zu rows", name, rows);
    char path[64];
    golden g;
    size_t n;
    snprintf(path, sizeof path, "%s/golden.gguf", name);
    golden_open(&g, golden_path(path));
    const int32_t *ids = golden_i32(&g, &n, "text.2.tokens");
    snprintf(path, sizeof path, "%s/text.gguf", name);
    char model[256];
    snprintf(model, sizeof model, "%s", golden_path(path));
    bool cpu_equal = false, gpu_equal = false;
    records on_cpu = trace_prompt(model, "cpu", ids, rows < n ? rows : n, &cpu_equal),
            on_gpu = trace_prompt(model, "gpu", ids, rows < n ? rows : n, &gpu_equal);
    CHECKF(cpu_equal && gpu_equal, "tracing changes the logits");
    compare(&on_cpu, &on_gpu, (bound){.of_rms = 2e-4});
    golden_close(&g);
}

/* ---- towers --------------------------------------------------------------------------------- */

/* The first image loads the tower; the second one is traced. */
static records trace_image(const char *device)
{
    records r = {0};
    golden media;
    golden_open(&media, golden_path("media/golden.gguf"));
    bz_model *m = open_golden_or_fail("e-like", device);
    bz_encoder *e = encoder_or_fail(
        m, &(bz_encoder_options){
               .size = sizeof(bz_encoder_options), .budget = 70, .exact = true, .threads = 2});
    bz_media *first = encode_golden(e, &media, "image", 0);
    bz_backend *b = bz_encoder_backend(e, BZ_MEDIA_IMAGE);
    b->set_trace(b, on_trace, &r);
    bz_media *second = encode_golden(e, &media, "image", 2);
    CHECK(first && second);
    bz_media_free(first);
    bz_media_free(second);
    bz_encoder_free(e);
    bz_model_free(m);
    golden_close(&media);
    return r;
}

static void test_tower(void)
{
    begin("vision tower");
    records on_cpu = trace_image("cpu"), on_gpu = trace_image("gpu");
    compare(&on_cpu, &on_gpu, (bound){.of_rms = 2e-4});
}

int main(void)
{
    devices_keep();
    test_text("e-like", 1);
    test_text("e-like", 48);
    test_text("moe-like", 20);
    test_tower();
    return finish();
}
