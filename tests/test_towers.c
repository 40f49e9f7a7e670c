/* The towers against Hugging Face's outputs: soft tokens and intermediate tensors, from either kind
 * of file. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/forward.h"
#include "support/golden.h"
#include "support/media.h"

typedef struct watch {
    const golden *g;
    const char *what; /* "image.2" or "audio.0" */
    unsigned seen;
} watch;

static void on_trace(void *user, const bz_step *step, int output, const void *values, uint32_t rows,
                     uint32_t cols, uint32_t stride)
{
    watch *w = user;
    char name[64];
    (void)output;
    size_t n;
    if (strcmp(step->name, "soft_tokens") == 0) {
        return; /* compared as what comes out */
    }
    if (step->layer >= 0) {
        snprintf(name, sizeof name, "%s.%s.%d", w->what, step->name, (int)step->layer);
    } else {
        snprintf(name, sizeof name, "%s.%s", w->what, step->name);
    }
    const float *want = golden_f32(w->g, &n, "%s", name);
    if (!want) {
        return;
    }
    CHECKF(n == (size_t)rows * cols, "%s has %zu values, not %u x %u", name, n, rows, cols);
    double worst = 0;
    for (uint32_t r = 0; r < rows && n == (size_t)rows * cols; r++) {
        worst = fmax(worst, max_difference((const float *)values + (size_t)r * stride,
                                           want + (size_t)r * cols, cols));
    }
    CHECKF(worst < 1e-4, "%s: off by %g", name, worst);
    w->seen++;
}

static void compare(const golden *g, bz_media *m, const char *kind, int i)
{
    const double d = soft_tokens_error(g, m, kind, i);
    CHECKF(d < 1e-4, "soft tokens off by %g", d);
    bz_media_free(m);
}

static void run_case(const char *what, const char *text, const char *mmproj, const char *name,
                     bool sound, bool layers, const char *kernels, unsigned threads)
{
    golden g, media;
    open_media_golden(&g, name);
    golden_open(&media, golden_path("media/golden.gguf"));
    bz_model *m = open_two_or_fail(text, mmproj);
    const struct {
        const char *kind;
        int i;
        uint32_t budget;
        unsigned inner; /* tensors on the way */
    } cases[] = {
        {"image", 0, 70, 0}, {"image", 2, 6, layers ? 4 : 0}, {"audio", 0, 0, layers ? 4 : 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases - !sound; i++) {
        begin("%s: %s %d%s%s", what, cases[i].kind, cases[i].i, kernels ? " kernels " : "",
              kernels ? kernels : "");
        bz_encoder *e = encoder_or_fail(m, &(bz_encoder_options){.size = sizeof(bz_encoder_options),
                                                                 .budget = cases[i].budget,
                                                                 .kernels = kernels,
                                                                 .threads = threads});
        char which[16];
        snprintf(which, sizeof which, "%s.%d", cases[i].kind, cases[i].i);
        watch w = {&g, which, 0};
        bz_backend *b =
            bz_encoder_backend(e, cases[i].kind[0] == 'i' ? BZ_MEDIA_IMAGE : BZ_MEDIA_AUDIO);
        b->set_trace(b, on_trace, &w);
        compare(&g, encode_golden(e, &media, cases[i].kind, cases[i].i), cases[i].kind, cases[i].i);
        CHECKF(w.seen == cases[i].inner, "%u inner tensors compared, not %u", w.seen,
               cases[i].inner);
        bz_encoder_free(e);
    }
    bz_model_free(m);
    golden_close(&g);
    golden_close(&media);
}

/* ---- what an encoder does besides ------------------------------------------------------ */

static void test_remembering(void)
{
    begin("encoded media are cached by content");
    golden media;
    golden_open(&media, golden_path("media/golden.gguf"));
    bz_model *m =
        open_two_or_fail(golden_path("e-like/text.gguf"), golden_path("e-like/mmproj.gguf"));
    bz_encoder *e = encoder_or_fail(
        m, &(bz_encoder_options){.size = sizeof(bz_encoder_options), .budget = 70, .keep = 2});
    bz_media *a = encode_golden(e, &media, "image", 0), *b = encode_golden(e, &media, "image", 0);
    CHECK(a == b && bz_encoder_get_stats(e).encoded == 1 && bz_encoder_get_stats(e).cached == 1);
    bz_media *c = encode_golden(e, &media, "audio", 0), *d = encode_golden(e, &media, "image", 2);
    CHECK(c != a && d != a && bz_encoder_get_stats(e).encoded == 3);
    bz_media_free(b);
    b = encode_golden(e, &media, "image", 0); /* two are kept: this one has been evicted */
    CHECK(b != a && bz_encoder_get_stats(e).encoded == 4);
    uint32_t rows, width;
    const float *x = bz_media_rows(a, &rows, &width), *y = bz_media_rows(b, &rows, &width);
    CHECK(memcmp(x, y, (size_t)rows * width * sizeof *x) == 0);
    bz_media_free(a);
    bz_media_free(b);
    bz_media_free(c);
    bz_encoder_free(e);
    CHECK(bz_media_rows(d, &rows, &width) && rows == 60); /* outlives its encoder */
    bz_media_free(d);
    bz_model_free(m);
    golden_close(&media);
}

static void test_long_sound(void)
{
    begin("audio of more than 30 seconds is encoded in pieces");
    bz_model *m =
        open_two_or_fail(golden_path("e-like/text.gguf"), golden_path("e-like/mmproj.gguf"));
    bz_encoder *e = encoder_or_fail(m, NULL);
    const size_t n = 480000 + 16000;
    float *pcm = malloc(n * sizeof *pcm);
    for (size_t i = 0; i < n; i++) {
        pcm[i] = (float)sin((double)(i % 7919) * 0.05) * 0.3f;
    }
    bz_error err = {0};
    uint32_t rows[3], width;
    const float *values[3];
    bz_media *made[3];
    const struct {
        size_t first, n;
    } part[3] = {{0, n}, {0, 480000}, {480000, 16000}};
    for (int i = 0; i < 3; i++) {
        bz_job *job = NULL;
        CHECKF(bz_encode_audio(e, pcm + part[i].first, part[i].n, 16000, &job, &err) == BZ_OK &&
                   bz_job_run(job, NULL, &err) == BZ_OK,
               "%s", err.text);
        made[i] = bz_job_media(job);
        values[i] = bz_media_rows(made[i], &rows[i], &width);
        bz_job_free(job);
    }
    CHECK(bz_media_pieces(made[0]) == 2 && bz_media_pieces(made[1]) == 1);
    CHECKF(rows[0] == 775 && rows[1] == 750 && rows[2] == 25, "%u %u %u", rows[0], rows[1],
           rows[2]);
    CHECK(memcmp(values[0], values[1], (size_t)rows[1] * width * sizeof(float)) == 0);
    CHECK(memcmp(values[0] + (size_t)rows[1] * width, values[2],
                 (size_t)rows[2] * width * sizeof(float)) == 0);
    for (int i = 0; i < 3; i++) {
        bz_media_free(made[i]);
    }
    free(pcm);
    bz_encoder_free(e);
    bz_model_free(m);
}

static void test_refusals(void)
{
    bz_error err = {0};
    bz_job *job = NULL;
    bz_model *m = NULL;
    const uint8_t pixel[3] = {0};
    const float silence[200] = {0};

    begin("without a projector file");
    m = open_or_fail(golden_path("e-like/text.gguf"));
    CHECK(!bz_model_takes(m, BZ_MEDIA_IMAGE) && !bz_model_takes(m, BZ_MEDIA_AUDIO));
    bz_encoder *e = encoder_or_fail(m, NULL);
    CHECK(bz_encode_image(e, pixel, 1, 1, &job, &err) == BZ_UNSUPPORTED_MODEL &&
          strstr(err.text, "open its mmproj file together with it"));
    CHECK(bz_encode_audio(e, silence, 200, 16000, &job, &err) == BZ_UNSUPPORTED_MODEL &&
          strstr(err.text, "open its mmproj file together with it"));
    bz_encoder_free(e);
    bz_model_free(m);

    begin("with another model's projector file");
    m = NULL;
    CHECK(bz_model_open_file(&m, golden_path("unified/text.gguf"),
                             golden_path("e-like/mmproj.gguf"), NULL, &err) == BZ_BAD_REQUEST &&
          strstr(err.text, "another model") && !m);

    begin("vision without audio");
    m = open_two_or_fail(golden_path("moe-like/text.gguf"), golden_path("moe-like/mmproj.gguf"));
    CHECK(bz_model_takes(m, BZ_MEDIA_IMAGE) && !bz_model_takes(m, BZ_MEDIA_AUDIO));
    e = encoder_or_fail(m, NULL);
    CHECK(bz_encode_audio(e, silence, 200, 16000, &job, &err) == BZ_UNSUPPORTED_MODEL);
    begin("empty images and audio");
    CHECK(bz_encode_image(e, pixel, 0, 1, &job, &err) == BZ_BAD_REQUEST);
    CHECK(bz_encode_image(e, pixel, 10000, 10000, &job, &err) == BZ_BAD_REQUEST &&
          strstr(err.text, "megapixels"));
    bz_encoder_free(e);
    bz_model_free(m);
    m = open_two_or_fail(golden_path("e-like/text.gguf"), golden_path("e-like/mmproj.gguf"));
    e = encoder_or_fail(m, NULL);
    CHECK(bz_encode_audio(e, silence, 0, 16000, &job, &err) == BZ_BAD_REQUEST);
    CHECK(bz_encode_audio(e, silence, 200, 12, &job, &err) == BZ_BAD_REQUEST);
    CHECK(bz_encode_audio(e, silence, 160, 16000, &job, &err) == BZ_OK &&
          bz_job_run(job, NULL, &err) == BZ_BAD_REQUEST);
    bz_job_free(job);
    CHECK(bz_encode_audio(e, silence, 161, 16000, &job, &err) == BZ_OK &&
          bz_job_run(job, NULL, &err) == BZ_OK);
    begin("an encoder runs one job at a time");
    bz_job *other = NULL;
    CHECK(bz_encode_audio(e, silence, 161, 16000, &other, &err) == BZ_BAD_REQUEST);
    bz_job_free(job);
    CHECK(bz_encode_audio(e, silence, 161, 16000, &other, &err) == BZ_OK);
    bz_job_free(other); /* never begun */
    bz_encoder_free(e);
    bz_model_free(m);
}

static int stop_at_third(void *user, const bz_event *event)
{
    unsigned *count = user;
    if (event->kind == BZ_EVENT_STEP) {
        return 0;
    }
    CHECK(event->kind == BZ_EVENT_PROGRESS && event->done <= event->total && event->total > 0);
    return ++*count == 2;
}

static void test_cancel(void)
{
    begin("progress per block, and cancelling there");
    golden media;
    golden_open(&media, golden_path("media/golden.gguf"));
    bz_model *m =
        open_two_or_fail(golden_path("e-like/text.gguf"), golden_path("e-like/mmproj.gguf"));
    bz_encoder *e = encoder_or_fail(m, &(bz_encoder_options){.size = sizeof(bz_encoder_options),
                                                             .budget = 1120,
                                                             .kernels = "plain",
                                                             .threads = 1});
    static uint8_t rgb[300 * 300 * 3];
    for (size_t i = 0; i < sizeof rgb; i++) {
        rgb[i] = (uint8_t)(i * 7 + i / 900);
    }
    bz_job *job = NULL;
    bz_error err = {0};
    unsigned events = 0;
    CHECK(bz_encode_image(e, rgb, 300, 300, &job, &err) == BZ_OK);
    /* 99 x 99 patches are more than this table of positions has: refused before anything is
     * computed
     */
    CHECK(bz_job_run(job, NULL, &err) == BZ_BAD_REQUEST && strstr(err.text, "positions"));
    bz_job_free(job);
    bz_encoder_free(e);
    e = encoder_or_fail(
        m, &(bz_encoder_options){
               .size = sizeof(bz_encoder_options), .budget = 70, .kernels = "plain", .threads = 1});
    CHECK(bz_encode_image(e, rgb, 300, 300, &job, &err) == BZ_OK);
    CHECK(bz_job_run(job,
                     &(bz_host){.size = sizeof(bz_host), .event = stop_at_third, .user = &events},
                     &err) == BZ_ABORTED &&
          events == 2);
    bz_job_free(job);
    CHECK(bz_encode_image(e, rgb, 300, 300, &job, &err) == BZ_OK &&
          bz_job_run(job, NULL, &err) == BZ_OK);
    CHECK(bz_encoder_get_stats(e).encoded == 1);
    bz_job_free(job);
    bz_encoder_free(e);
    bz_model_free(m);
    golden_close(&media);
}

int main(void)
{
    run_case("e-like (mmproj)", golden_path("e-like/text.gguf"), golden_path("e-like/mmproj.gguf"),
             "e-like", true, true, NULL, 2);
    run_case("moe-like (mmproj)", golden_path("moe-like/text.gguf"),
             golden_path("moe-like/mmproj.gguf"), "moe-like", false, true, NULL, 2);
    run_case("unified", golden_path("unified/text.gguf"), golden_path("unified/mmproj.gguf"),
             "unified", true, false, NULL, 2);
    run_case("e-like (mmproj)", golden_path("e-like/text.gguf"), golden_path("e-like/mmproj.gguf"),
             "e-like", true, true, "plain", 2);
    run_case("moe-like (mmproj)", golden_path("moe-like/text.gguf"),
             golden_path("moe-like/mmproj.gguf"), "moe-like", false, true, "plain", 2);
    test_refusals();
    if (!quick_run()) { /* short runs are for another instruction set; this is the same code */
        run_case("e-like (one file)", model_path("e-like-whole.gguf"), NULL, "e-like", true, true,
                 NULL, 1);
        run_case("moe-like (one file)", model_path("moe-like-whole.gguf"), NULL, "moe-like", false,
                 true, NULL, 1);
        test_remembering();
        test_long_sound();
        test_cancel();
    }
    return finish();
}
