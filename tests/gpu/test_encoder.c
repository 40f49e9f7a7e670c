/* Towers on the model's own GPU: one device, only the weights that are needed, and what happens
 * when they do not fit or the device is lost. */
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "encoder/encode.h"
#include "gpu/device/test_hooks.h"
#include "gpu/run/internal.h"
#include "session/job.h"
#include "session/media.h"
#include "session/session.h"
#include "support/check.h"
#include "support/devices.h"
#include "support/forward.h"
#include "support/golden.h"
#include "support/gpu_wait.h"
#include "support/media.h"

enum { SIDE = 96, SAMPLES = 16000 };

typedef struct inputs {
    uint8_t rgb[SIDE * SIDE * 3];
    float pcm[SAMPLES];
} inputs;

static inputs *make_inputs(void)
{
    inputs *in = calloc(1, sizeof *in);
    uint32_t state = 7;
    for (size_t i = 0; i < sizeof in->rgb; i++) {
        state = state * 1664525u + 1013904223u;
        in->rgb[i] = (uint8_t)(state >> 24);
    }
    for (size_t i = 0; i < SAMPLES; i++) {
        in->pcm[i] = (float)(int)(i * i / 37 % 200) / 200.0f - 0.5f;
    }
    return in;
}

/* Runs a job whose device is lost after this many progress events; -1: never. */
typedef struct course {
    int lose_after;
    uint32_t losses; /* how often, each time after the first progress again */
    uint32_t reloads, events;
    bz_error error;
} course;

static bz_media *encode(bz_model *m, bz_encoder *e, bz_media_kind kind, const inputs *in, course *c)
{
    bz_job *job = NULL;
    bz_media *made = NULL;
    bz_status status = kind == BZ_MEDIA_IMAGE
                           ? bz_encode_image(e, in->rgb, SIDE, SIDE, &job, &c->error)
                           : bz_encode_audio(e, in->pcm, SAMPLES, 16000, &job, &c->error);
    while (status == BZ_OK) {
        bz_need need = {0};
        const bz_progress p = bz_job_step(job, &need);
        if (p == BZ_JOB_DONE) {
            made = bz_job_media(job);
            break;
        }
        if (p == BZ_JOB_ERROR) {
            c->error = need.error;
            break;
        }
        if (p == BZ_JOB_EVENT) {
            c->reloads += need.event.kind == BZ_EVENT_RELOAD;
            c->events += need.event.kind == BZ_EVENT_PROGRESS;
            if (c->losses && need.event.kind == BZ_EVENT_PROGRESS &&
                (int)c->events > c->lose_after) {
                c->losses--;
                gpu_test_lose(bz_model_device(m));
            }
        } else if (p == BZ_JOB_NEED_GPU) {
            bz_os_sleep(GPU_POLL_NS);
        }
    }
    bz_job_free(job);
    return made;
}

static double difference(const bz_media *a, const bz_media *b)
{
    uint32_t rows, width, rows_b, width_b;
    const float *x = a ? bz_media_rows(a, &rows, &width) : NULL,
                *y = b ? bz_media_rows(b, &rows_b, &width_b) : NULL;
    return x && y && rows == rows_b && width == width_b ? max_difference(x, y, (size_t)rows * width)
                                                        : 1e9;
}

static const bz_encoder_options small = {.size = sizeof small, .budget = 70, .keep = 1};

static uint64_t bytes_of(const bz_model *m, bool audio)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < m->towers.table.n; i++) {
        const char *name = m->towers.table.info[i].name;
        const bool is_audio = strncmp(name, "a.", 2) == 0 || strncmp(name, "mm.a.", 5) == 0;
        bytes += is_audio == audio ? m->towers.table.info[i].size : 0;
    }
    return bytes;
}

static const gpu_weights *weights_of(bz_encoder *e, bz_media_kind kind)
{
    return &((gpu_backend *)(void *)bz_encoder_backend(e, kind))->weights;
}

static void test_sharing(const inputs *in)
{
    begin("towers are on the model's device, each when it is needed");
    bz_model *m = open_golden_or_fail("e-like", "gpu");
    gpu *g = bz_model_device(m);
    bz_encoder *e = encoder_or_fail(m, &small);
    const uint64_t before = gpu_counts_of(g).buffer_bytes, dispatches = gpu_counts_of(g).dispatches;
    course c = {0};
    bz_media *seen = encode(m, e, BZ_MEDIA_IMAGE, in, &c);
    CHECKF(seen != NULL, "%s", c.error.text);
    CHECK(gpu_counts_of(g).dispatches > dispatches && bz_model_device(m) == g);
    const uint64_t eyes = weights_of(e, BZ_MEDIA_IMAGE)->bytes;
    CHECKF(eyes >= bytes_of(m, false) && eyes < bytes_of(m, false) * 3 / 2, "%llu bytes for %llu",
           (unsigned long long)eyes, (unsigned long long)bytes_of(m, false));
    CHECK(gpu_counts_of(g).buffer_bytes >= before + eyes);
    bz_media *heard = encode(m, e, BZ_MEDIA_AUDIO, in, &c);
    CHECKF(heard != NULL, "%s", c.error.text);
    const uint64_t ears = weights_of(e, BZ_MEDIA_AUDIO)->bytes;
    CHECK(ears >= bytes_of(m, true) && ears < bytes_of(m, true) * 3 / 2);
    bz_fit fit = {.size = sizeof fit};
    CHECK(bz_model_fit(m, NULL, &fit, NULL) == BZ_OK);
    CHECKF(fit.towers <= eyes + ears + 1024 && fit.towers + 1024 >= eyes + ears,
           "%llu bytes foretold, %llu are there", (unsigned long long)fit.towers,
           (unsigned long long)(eyes + ears));
    CHECK(!bz_encoder_notice(e));
    bz_media_free(seen);
    bz_media_free(heard);
    bz_encoder_free(e);
    CHECK(gpu_counts_of(g).buffer_bytes == before);
    bz_model_free(m);
}

/* These towers are too small for matrices, so that a device may pretend to have them. */
static void test_exact(const inputs *in)
{
    begin("an exact encoder rounds nothing, a fast one may");
    bz_model *m = open_golden_or_fail("e-like", "gpu");
    gpu_limits limits = *gpu_limits_of(bz_model_device(m));
    for (int offered = 0; offered < 2; offered++) {
        limits.matrices = offered;
        gpu_test_limits(bz_model_device(m), &limits);
        for (int exact = 0; exact < 2; exact++) {
            course c = {0};
            bz_encoder *e = encoder_or_fail(
                m, &(bz_encoder_options){
                       .size = sizeof(bz_encoder_options), .budget = 70, .exact = exact});
            bz_media *made = encode(m, e, BZ_MEDIA_IMAGE, in, &c);
            CHECKF(made != NULL, "%s", c.error.text);
            CHECK(((gpu_backend *)(void *)bz_encoder_backend(e, BZ_MEDIA_IMAGE))->matrices ==
                  (offered && !exact));
            bz_media_free(made);
            bz_encoder_free(e);
        }
    }
    bz_model_free(m);
}

static void test_fused(const inputs *in)
{
    begin("fused steps have the results of single steps");
    bz_model *m = open_golden_or_fail("e-like", "gpu");
    for (int kind = 0; kind < 2; kind++) {
        course c = {0};
        bz_encoder *e = encoder_or_fail(m, &small), *plain = encoder_or_fail(m, &small);
        bz_encoder_no_fuse(plain);
        bz_media *a = encode(m, e, (bz_media_kind)kind, in, &c),
                 *b = encode(m, plain, (bz_media_kind)kind, in, &c);
        const bz_schedule *s = bz_encoder_schedule(e, (bz_media_kind)kind),
                          *t = bz_encoder_schedule(plain, (bz_media_kind)kind);
        CHECKF(difference(a, b) < 1e-4, "%g", difference(a, b));
        CHECKF(s && t && s->n * 3 < t->n * 2, "%u dispatches, one by one %u", s ? s->n : 0,
               t ? t->n : 0);
        bz_media_free(a);
        bz_media_free(b);
        bz_encoder_free(e);
        bz_encoder_free(plain);
    }
    bz_model_free(m);
}

static void test_loss(const inputs *in)
{
    bz_model *m = open_golden_or_fail("e-like", "gpu");
    bz_encoder *e = encoder_or_fail(m, &small);
    course first = {0};
    bz_media *want = encode(m, e, BZ_MEDIA_IMAGE, in, &first);
    bz_encoder_free(e);
    for (int after = 0; after < 3; after++) {
        begin("a device lost after %d blocks of an image", after);
        e = encoder_or_fail(m, &small);
        course c = {.lose_after = after, .losses = 1};
        bz_media *got = encode(m, e, BZ_MEDIA_IMAGE, in, &c);
        CHECKF(difference(got, want) == 0, "%s", c.error.text);
        CHECK(c.losses == 0 && c.reloads > 0);
        bz_media_free(got);
        course sound = {0};
        got = encode(m, e, BZ_MEDIA_AUDIO, in, &sound);
        CHECKF(got != NULL, "%s", sound.error.text);
        bz_media_free(got);
        bz_encoder_free(e);
    }
    begin("a device lost again where it was lost before");
    e = encoder_or_fail(m, &small);
    course twice = {.lose_after = 0, .losses = 2};
    bz_media *got = encode(m, e, BZ_MEDIA_IMAGE, in, &twice);
    CHECKF(!got && twice.error.code == BZ_DEVICE_LOST, "%u losses left, %u events, %u reloads: %s",
           twice.losses, twice.events, twice.reloads, twice.error.text);
    course after = {0};
    got = encode(m, e, BZ_MEDIA_IMAGE, in, &after);
    CHECKF(difference(got, want) == 0, "%s", after.error.text);
    bz_media_free(got);

    begin("a device lost between images, while the towers were there");
    gpu_test_lose(bz_model_device(m));
    course later = {0};
    got = encode(m, e, BZ_MEDIA_AUDIO, in, &later);
    CHECKF(got && later.reloads > 0, "%s", later.error.text);
    bz_media_free(got);
    bz_media_free(want);
    bz_encoder_free(e);
    bz_model_free(m);
}

static void test_no_room(const inputs *in)
{
    begin("no memory for a tower: it runs on the CPU, and reports that");
    bz_model *m = open_golden_or_fail("e-like", "gpu"), *cpu = open_golden_or_fail("e-like", "cpu");
    gpu *g = bz_model_device(m);
    bz_encoder *e = encoder_or_fail(m, &small), *there = encoder_or_fail(cpu, &small);
    course c = {0};
    CHECK(gpu_test_limit_memory(g, gpu_counts_of(g).buffer_bytes + bytes_of(m, false) / 2));
    bz_media *got = encode(m, e, BZ_MEDIA_IMAGE, in, &c),
             *want = encode(cpu, there, BZ_MEDIA_IMAGE, in, &c);
    CHECKF(difference(got, want) < 1e-6, "%s", c.error.text);
    CHECKF(bz_encoder_notice(e) && strstr(bz_encoder_notice(e), "Images are encoded on the CPU"),
           "%s", bz_encoder_notice(e) ? bz_encoder_notice(e) : "no notice");
    CHECK(strcmp(bz_encoder_backend(e, BZ_MEDIA_IMAGE)->name, "gpu") != 0 && bz_model_is_loaded(m));
    bz_media_free(got);
    bz_media_free(want);
    bz_encoder_free(e);
    bz_encoder_free(there);
    bz_model_free(m);
    bz_model_free(cpu);
}

static void test_small_bindings(const inputs *in)
{
    begin("a tower whose activations are larger than a binding");
    bz_model *m = open_golden_or_fail("e-like", "gpu");
    gpu *g = bz_model_device(m);
    gpu_limits limits = *gpu_limits_of(g);
    const gpu_limits usual = limits;
    bz_encoder *e = encoder_or_fail(
        m, &(bz_encoder_options){.size = sizeof(bz_encoder_options), .budget = 280});
    limits.max_binding = 1 << 20;
    gpu_test_limits(g, &limits);
    course c = {0};
    bz_media *got = encode(m, e, BZ_MEDIA_IMAGE, in, &c);
    CHECKF(got && bz_encoder_notice(e), "%s", c.error.text);
    gpu_test_limits(g, &usual);
    bz_media_free(got);
    bz_encoder_free(e);
    bz_model_free(m);
}

/* A NaN in each matrix in turn: reported as on the CPU. Clamping must not turn it into a number. */
static void test_no_number(const char *device, bz_media_kind kind, const inputs *in)
{
    bz_model *m = open_golden_or_fail("e-like", device);
    for (uint32_t i = 0; i < m->towers.table.n; i++) {
        const bz_weight_info *w = &m->towers.table.info[i];
        /* softmax ignores NaN, hence not queries and keys */
        const bool left_out = strstr(w->name, "attn_q") || strstr(w->name, "attn_k");
        const bool chosen = !quick_run() || strstr(w->name, "ffn_up") ||
                            strstr(w->name, "attn_v") || strstr(w->name, "conv");
        if (!bz_encoder_is_of(kind, w) || w->ne[1] < 2 || strstr(w->name, ".blk.1.") || left_out ||
            !chosen) {
            continue;
        }
        begin("NaN in %s on %s", w->name, device);
        bz_encoder *e = encoder_or_fail(m, &small);
        uint8_t *bytes = malloc(w->size);
        memcpy(bytes, e->bytes[i], w->size);
        memset(bytes, 0xff, 4);
        e->bytes[i] = bytes;
        course c = {0};
        bz_media *got = encode(m, e, kind, in, &c);
        CHECKF(!got && c.error.code == BZ_NUMERIC, "%s", got ? "it was encoded" : c.error.text);
        bz_media_free(got);
        bz_encoder_free(e);
        free(bytes);
    }
    bz_model_free(m);
}

static bz_model *open_wide(const char *device)
{
    return open_two_on_or_fail(model_path("tiny-e-q4_k_m.gguf"), model_path("projectors/wide.gguf"),
                               device);
}

/* A layer of 26B's and 31B's tower: heads of 72, more values than any other. */
static void test_large(const inputs *in)
{
    begin("a layer of the large tower on a device without features and raised limits");
    bz_model *m = open_wide("gpu-baseline"), *cpu = open_wide("cpu");
    bz_encoder *e = encoder_or_fail(m, &small), *there = encoder_or_fail(cpu, &small);
    course c = {0};
    bz_media *got = encode(m, e, BZ_MEDIA_IMAGE, in, &c),
             *want = encode(cpu, there, BZ_MEDIA_IMAGE, in, &c);
    CHECKF(difference(got, want) < 1e-3, "%g %s", difference(got, want), c.error.text);
    CHECKF(!bz_encoder_notice(e), "%s", bz_encoder_notice(e));
    bz_media_free(got);
    bz_media_free(want);
    bz_encoder_free(e);
    bz_encoder_free(there);

    begin("memory for an image of 280 tokens there");
    bz_job *job = NULL;
    bz_error err = {0};
    uint8_t *rgb = calloc(960 * 672, 3);
    e = encoder_or_fail(m,
                        &(bz_encoder_options){.size = sizeof(bz_encoder_options), .budget = 280});
    CHECK(bz_encode_image(e, rgb, 960, 672, &job, &err) == BZ_OK);
    bz_progress p = BZ_JOB_AGAIN;
    while (!bz_encoder_schedule(e, BZ_MEDIA_IMAGE) && p != BZ_JOB_ERROR && p != BZ_JOB_DONE &&
           !bz_encoder_notice(e)) {
        bz_need need = {0};
        p = bz_job_step(job, &need);
        err = need.error;
    }
    CHECKF(p != BZ_JOB_ERROR && !bz_encoder_notice(e), "%s",
           bz_encoder_notice(e) ? bz_encoder_notice(e) : err.text);
    CHECK(bz_encoder_schedule(e, BZ_MEDIA_IMAGE) &&
          strcmp(bz_encoder_backend(e, BZ_MEDIA_IMAGE)->name, "gpu") == 0);
    bz_job_free(job);
    bz_encoder_free(e);
    bz_model_free(m);
    bz_model_free(cpu);
    free(rgb);
}

int main(void)
{
    devices_keep();
    inputs *in = make_inputs();
    test_sharing(in);
    test_exact(in);
    test_fused(in);
    test_loss(in);
    test_no_room(in);
    test_small_bindings(in);
    test_no_number("cpu", BZ_MEDIA_IMAGE, in);
    test_no_number("gpu", BZ_MEDIA_IMAGE, in);
    test_no_number("cpu", BZ_MEDIA_AUDIO, in);
    test_no_number("gpu", BZ_MEDIA_AUDIO, in);
    test_large(in);
    free(in);
    return finish();
}
