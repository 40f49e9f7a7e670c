#include "cli/bench/bench_media.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "bezel_debug.h"
#include "bezel_media.h"
#include "cli/output.h"
#include "cli/chat/media_file.h"

/* The image has exactly the default budget of 280 tokens. */
enum { WIDE = 960, HIGH = 672, RATE = 16000, SECONDS = 30, MAX_KERNELS = 48, MAX_RUNS = 1000 };

typedef struct media_speed {
    const char *what;
    bz_media_kind kind;
    uint32_t tokens;
    double first;         /* seconds, including loading and compiling */
    double run[MAX_RUNS]; /* sorted */
    bz_debug_kernel_time lines[MAX_KERNELS];
    size_t n_lines;
} media_speed;

typedef struct media_bench {
    const cli_options *o;
    bz_encoder *encoder;
    uint8_t *rgb; /* [HIGH][WIDE][3] */
    float *pcm;   /* [RATE * SECONDS] */
} media_bench;

/* The encoder caches results by content, so every run changes the input. */
static bz_status once(media_bench *b, media_speed *s, unsigned run, double *seconds, bz_error *err)
{
    bz_job *job = NULL;
    const double start = cli_seconds();
    bz_status status;
    if (s->kind == BZ_MEDIA_IMAGE) {
        b->rgb[run % 256] ^= (uint8_t)(1 + run / 256);
        status = bz_encode_image(b->encoder, b->rgb, WIDE, HIGH, &job, err);
    } else {
        b->pcm[run] = -b->pcm[run];
        status = bz_encode_audio(b->encoder, b->pcm, (size_t)RATE * SECONDS, RATE, &job, err);
    }
    if (status == BZ_OK) {
        status = bz_job_run(job, NULL, err);
    }
    name_mmproj_option(err);
    *seconds = cli_seconds() - start;
    bz_media *media = status == BZ_OK ? bz_job_media(job) : NULL;
    if (media) {
        uint32_t width;
        bz_media_rows(media, &s->tokens, &width);
        bz_media_free(media);
    }
    bz_job_free(job);
    return status;
}

static bz_status measure(media_bench *b, media_speed *s, bz_error *err)
{
    bz_status status = once(b, s, 0, &s->first, err);
    for (unsigned run = 0; run < b->o->repeat && status == BZ_OK; run++) {
        status = once(b, s, run + 1, &s->run[run], err);
    }
    cli_sort(s->run, b->o->repeat);
    if (status == BZ_OK) {
        s->n_lines = bz_debug_profile_encoder(b->encoder, s->kind, s->lines, MAX_KERNELS);
    }
    return status;
}

static void print_one(const media_bench *b, const media_speed *s)
{
    double total = 0;
    printf("  %-8s %6u  %10.2f ms  %10.2f ms  %10.2f ms\n", s->what, s->tokens, 1e3 * s->run[0],
           1e3 * s->run[b->o->repeat / 2], 1e3 * s->first);
    for (size_t k = 0; k < s->n_lines; k++) {
        total += s->lines[k].microseconds;
    }
    for (size_t k = 0; k < s->n_lines; k++) {
        const bz_debug_kernel_time *l = &s->lines[k];
        printf("    %-24s %5u  %9.1f us %5.1f%%\n", l->kernel, l->dispatches, l->microseconds,
               100 * l->microseconds / total);
    }
}

/* A noisy gradient and a rising tone. */
static bool make_inputs(media_bench *b)
{
    b->rgb = malloc((size_t)WIDE * HIGH * 3);
    b->pcm = malloc((size_t)RATE * SECONDS * sizeof *b->pcm);
    if (!b->rgb || !b->pcm) {
        return false;
    }
    uint32_t state = 1;
    for (size_t i = 0; i < (size_t)WIDE * HIGH * 3; i++) {
        state = state * 1664525u + 1013904223u;
        b->rgb[i] = (uint8_t)(i / (WIDE * 12) + (state >> 28));
    }
    for (size_t i = 0; i < (size_t)RATE * SECONDS; i++) {
        b->pcm[i] = 0.3f * sinf((float)i * (0.05f + (float)i * 2e-7f));
    }
    return true;
}

int bench_media(const cli_options *o, bz_model *model, double load_s)
{
    media_bench b = {.o = o};
    media_speed *speeds = calloc(2, sizeof *speeds);
    bz_error err = {0};
    const bz_encoder_options eo = {.size = sizeof eo,
                                   .budget = o->image_tokens,
                                   .threads = o->threads,
                                   .kernels = o->kernels,
                                   .exact = o->exact};
    bz_status status = speeds && make_inputs(&b)
                           ? BZ_OK
                           : bz_fail(&err, BZ_OUT_OF_MEMORY, "No memory for the input.");
    if (status == BZ_OK && !bz_model_takes(model, BZ_MEDIA_IMAGE) &&
        !bz_model_takes(model, BZ_MEDIA_AUDIO)) {
        status =
            bz_fail(&err, BZ_UNSUPPORTED_MODEL,
                    "This file has neither a vision nor an audio tower; for a model in two files "
                    "give the other one with --mmproj.");
    }
    if (status == BZ_OK) {
        status = bz_encoder_new(&b.encoder, model, &eo, &err);
    }
    if (status == BZ_OK) {
        speeds[0] = (media_speed){.what = "image", .kind = BZ_MEDIA_IMAGE};
        speeds[1] = (media_speed){.what = "audio", .kind = BZ_MEDIA_AUDIO};
        for (int i = 0; i < 2 && status == BZ_OK; i++) {
            if (bz_model_takes(model, speeds[i].kind)) {
                status = measure(&b, &speeds[i], &err);
            }
        }
    }
    if (status == BZ_OK) {
        printf("%s%s%s\nbezel %s; an image of %d x %d, %d seconds of audio; load %.3f s\n\n",
               o->model, o->mmproj ? ", " : "", o->mmproj ? o->mmproj : "", bz_version(), WIDE,
               HIGH, SECONDS, load_s);
        printf("           tokens        best         median          first\n");
        for (int i = 0; i < 2; i++) {
            if (speeds[i].tokens) {
                print_one(&b, &speeds[i]);
            }
        }
    }
    bz_encoder_free(b.encoder);
    free(b.rgb);
    free(b.pcm);
    free(speeds);
    return status == BZ_OK ? cli_flush() : cli_error(&err);
}
