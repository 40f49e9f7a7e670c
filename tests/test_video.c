/* Videos: which frames are taken, patches and prompts against Hugging Face's; joined frames in a
 * turn and in a session. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/model.h"
#include "support/check.h"
#include "support/forward.h"
#include "support/media.h"
#include "support/video.h"

static void test_choose(const golden *g)
{
    /* total, frames wanted (0: by the rate below), frames per second, native rate; as in the
     * golden's manifest */
    static const struct {
        uint64_t total;
        uint32_t most;
        double fps, rate;
    } cases[] = {{32, 32, 0, 0},   {33, 32, 0, 0},       {64, 32, 0, 0},  {100, 32, 0, 0},
                 {1000, 32, 0, 0}, {7919, 32, 0, 0},     {31, 32, 0, 0},  {90, 0, 2, 30},
                 {10, 0, 1, 30},   {300, 0, 0.7, 29.97}, {5, 1024, 0, 24}};
    begin("which frames are taken");
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        uint64_t index[BZ_VIDEO_MAX_FRAMES];
        size_t n;
        const int32_t *want = golden_i32(g, &n, "sample.%zu.indices", k);
        const uint32_t most = cases[k].most
                                  ? cases[k].most
                                  : bz_video_count(cases[k].total, cases[k].rate, cases[k].fps);
        const uint32_t got = bz_video_choose(index, most, cases[k].total);
        if (!CHECK(want)) {
            return;
        }
        if (n == 1 &&
            want[0] == -1) { /* fewer frames than wanted are refused there, all taken here */
            CHECKF(got == cases[k].total && index[got - 1] == got - 1, "%zu: %u", k, got);
            continue;
        }
        CHECKF(got == n, "%zu: %u instead of %zu", k, got, n);
        for (uint32_t i = 0; i < got && i < n; i++) {
            CHECKF(index[i] == (uint64_t)want[i], "%zu: frame %u", k, i);
        }
    }
    begin("frames of strange videos");
    uint64_t index[BZ_VIDEO_FRAMES];
    CHECK(bz_video_choose(index, 0, UINT64_MAX) == 32 && index[0] == 0 &&
          index[1] == UINT64_MAX / 32 &&
          index[31] == UINT64_MAX / 32 * 31 + (uint64_t)31 * 31 / 32);
    CHECK(bz_video_choose(index, 5, 0) == 0 && bz_video_choose(index, 0, 1) == 1);
    CHECK(bz_video_count(0, 0, 0) == 1 && bz_video_count(48, 0, 1) == 2 &&
          bz_video_count(UINT64_MAX, 1e-9, 1e9) == BZ_VIDEO_MAX_FRAMES &&
          bz_video_count(100, (double)NAN, (double)NAN) == 1);
}

/* The second video of a golden is short: all of its frames are at 00:00. */
static bz_media *within_a_second(const bz_media *video)
{
    bz_media *frames[BZ_VIDEO_FRAMES], *second = NULL;
    double seconds[BZ_VIDEO_FRAMES];
    for (uint32_t i = 0; i < bz_media_pieces(video); i++) {
        frames[i] = video->frames[i].media;
        seconds[i] = i / 50.0;
    }
    CHECK(bz_video_new(&second, frames, seconds, bz_media_pieces(video), NULL) == BZ_OK);
    return second;
}

/* As the reference's processor: the text with its placeholders replaced, tokenized as one. */
static void test_prompt(const bz_model *m, const golden *g, int k)
{
    begin("prompt %d", k);
    const video_case *c = &video_cases[k];
    bz_encoder *e = encoder_or_fail(
        m, &(bz_encoder_options){.size = sizeof(bz_encoder_options), .frame_budget = c->budget});
    bz_media *video = encode_video_case(e, c, NULL), *second = within_a_second(video);
    size_t n, n_patches;
    const int32_t *want = golden_i32(g, &n, "case.%d.tokens", k),
                  *patches = golden_i32(g, &n_patches, "case.%d.patches", k);
    bz_ids ids = {0};
    video_prompt(m, c->text, (bz_media *[2]){video, second}, &ids);
    CHECKF(want && ids.n == n && memcmp(ids.id, want, n * sizeof *want) == 0, "%zu of %zu tokens",
           ids.n, n);
    uint32_t rows, width;
    bz_media_rows(video, &rows, &width);
    CHECK(bz_media_pieces(video) * (size_t)c->videos == n_patches &&
          rows * 9 == (uint32_t)patches[0] * bz_media_pieces(video));
    bz_ids_free(&ids);
    bz_media_free(second);
    bz_media_free(video);
    bz_encoder_free(e);
}

/* The first patch of the first frame: theirs in [0, 1] by row, column and channel; ours in [-1, 1]
 * with the channels apart. */
static void test_patches(const bz_model *m, const golden *g, int k)
{
    begin("the first patch of video %d", k);
    const video_case *c = &video_cases[k];
    bz_encoder *e = encoder_or_fail(
        m, &(bz_encoder_options){.size = sizeof(bz_encoder_options), .frame_budget = c->budget});
    float first[768];
    bz_media *video = encode_video_case(e, c, first);
    size_t n;
    const float *want = golden_f32(g, &n, "case.%d.first_patch", k);
    double worst = want && n == 768 ? 0 : 1e9;
    for (size_t i = 0; i < 768 && n == 768; i++) {
        const double got = ((double)first[i] + 1) / 2, their = (double)want[i % 256 * 3 + i / 256];
        worst = fmax(worst, fabs(got - their));
    }
    CHECKF(worst < 1e-6, "off by %g", worst);
    bz_media_free(video);
    bz_encoder_free(e);
}

/* ---- joined frames -------------------------------------------------------------- */

static void test_join(const bz_model *m)
{
    bz_encoder *e = encoder_or_fail(m, NULL);
    const video_case c = {.frames = 2, .height = 48, .width = 48, .rate = 1, .videos = 1},
                     wide = {.frames = 2, .height = 48, .width = 96, .videos = 1};
    bz_media *video = encode_video_case(e, &c, NULL), *other = encode_video_case(e, &wide, NULL),
             *out = NULL;
    bz_error err = {0};
    double seconds = -1;
    begin("a joined video");
    uint32_t rows, width;
    CHECK(bz_media_get_kind(video) == BZ_MEDIA_VIDEO && bz_media_pieces(video) == 2 &&
          !bz_media_rows(video, &rows, &width) && rows == 128 && width == 128);
    const bz_media *one = bz_video_frame(video, 1, &seconds);
    CHECK(one && seconds == 1 && bz_media_rows(one, &rows, &width) && rows == 64);
    CHECK(!bz_video_frame(video, 2, NULL) && !bz_video_frame(one, 0, NULL));
    begin("videos that are refused");
    bz_media *frames[2] = {(bz_media *)(uintptr_t)one,
                           (bz_media *)(uintptr_t)bz_video_frame(other, 0, NULL)};
    double times[2] = {0, 1};
    CHECK(bz_video_new(&out, frames, times, 0, &err) == BZ_BAD_REQUEST);
    CHECK(bz_video_new(&out, frames, times, 2, &err) == BZ_BAD_REQUEST &&
          strstr(err.text, "same size"));
    CHECK(bz_video_new(&out, &video, times, 1, &err) == BZ_BAD_REQUEST &&
          strstr(err.text, "not an image"));
    times[0] = -1;
    CHECK(bz_video_new(&out, frames, times, 1, &err) == BZ_BAD_REQUEST &&
          strstr(err.text, "-1 seconds"));
    times[0] = (double)NAN;
    CHECK(bz_video_new(&out, frames, times, 1, &err) == BZ_BAD_REQUEST);
    times[0] = 59999.9;
    CHECK(bz_video_new(&out, frames, times, 1, &err) == BZ_OK);
    bz_media_free(video); /* frames stay as long as a video holds them */
    bz_arena arena = {0};
    CHECK(strcmp(bz_video_text(out, &arena), "999:59 <|image><|video|><image|>") == 0);
    bz_arena_free(&arena);
    bz_media_free(out);
    bz_media_free(other);
    bz_encoder_free(e);
    begin("frame budgets");
    bz_job *job = NULL;
    e = encoder_or_fail(
        m, &(bz_encoder_options){.size = sizeof(bz_encoder_options), .frame_budget = 1121});
    uint8_t pixel[3] = {0};
    CHECK(bz_encode_frame(e, pixel, 1, 1, &job, &err) == BZ_BAD_REQUEST &&
          strstr(err.text, "1121"));
    bz_encoder_free(e);
}

/* A video in a session is the same as its frames as images, but for the placeholders. */
static void test_session(const bz_model *m, const char *name)
{
    begin("a video in a session of %s", name);
    const bz_special_ids *special = bz_tokenizer_special(m->tokenizer);
    const uint32_t vocab = m->text.config.vocab;
    const video_case c = {.frames = 3, .height = 48, .width = 48, .rate = 0.5, .videos = 1};
    bz_encoder *e = encoder_or_fail(m, NULL);
    bz_media *video = encode_video_case(e, &c, NULL), *frames[3];
    for (uint32_t i = 0; i < 3; i++) {
        frames[i] = (bz_media *)(uintptr_t)bz_video_frame(video, i, NULL);
    }
    bz_ids ids = {0};
    bz_error err = {0};
    video_prompt(m, "<bos>a <|video|> b", (bz_media *[2]){video}, &ids);
    float *a = calloc(ids.n * vocab, sizeof *a), *b = calloc(ids.n * vocab, sizeof *b);
    bz_session *s = session_or_fail(m, NULL), *t = session_or_fail(m, NULL);
    CHECKF(prefill_with(s, ids.id, ids.n, &video, 1, a, &err) == BZ_OK, "%s", err.text);
    const uint64_t reused = bz_session_get_stats(s).reused;
    CHECK(prefill_with(s, ids.id, ids.n, &video, 1, NULL, &err) == BZ_OK &&
          bz_session_get_stats(s).reused - reused > ids.n / 2);
    int32_t *as_images = calloc(ids.n, sizeof *as_images);
    for (size_t i = 0; i < ids.n; i++) {
        as_images[i] = ids.id[i] == special->video ? special->image : ids.id[i];
    }
    CHECKF(prefill_with(t, as_images, ids.n, frames, 3, b, &err) == BZ_OK, "%s", err.text);
    CHECK(memcmp(a, b, ids.n * vocab * sizeof *a) == 0);
    CHECK(prefill_with(t, as_images, ids.n, &video, 1, NULL, &err) == BZ_BAD_REQUEST &&
          strstr(err.text, "an image where a video"));
    CHECK(prefill_with(t, ids.id, ids.n, frames, 3, NULL, &err) == BZ_BAD_REQUEST);
    CHECK(prefill_with(t, ids.id, ids.n - 70, &video, 1, NULL, &err) == BZ_BAD_REQUEST);
    free(a);
    free(b);
    free(as_images);
    bz_ids_free(&ids);
    bz_session_free(s);
    bz_session_free(t);
    bz_media_free(video);
    bz_encoder_free(e);
}

/* ---- turns ------------------------------------------------------------------------- */

static void test_turn(const bz_model *m)
{
    begin("a video in a request");
    static const char request[] =
        "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"see\"},"
        "{\"type\":\"video_url\",\"video_url\":{\"url\":\"clip.mp4\"}},"
        "{\"type\":\"image_url\",\"image_url\":{\"url\":\"cat.png\"}},"
        "{\"type\":\"text\",\"text\":\"what\"}]}]}";
    const video_case c = {.frames = 2, .height = 48, .width = 48, .rate = 1, .videos = 1};
    bz_encoder *e = encoder_or_fail(m, NULL);
    bz_media *video = encode_video_case(e, &c, NULL);
    const bz_media *image = bz_video_frame(video, 0, NULL);
    bz_turn *turn = NULL;
    bz_error err = {0};
    const char *source;
    size_t len, n;
    uint32_t snapshot;
    CHECKF(bz_turn_new_media(&turn, m, request, strlen(request), &err) == BZ_OK, "%s", err.text);
    CHECK(bz_turn_media(turn) == 2 &&
          bz_turn_media_source(turn, 0, &source, &len) == BZ_MEDIA_VIDEO && len == 8 &&
          bz_turn_media_source(turn, 1, &source, &len) == BZ_MEDIA_IMAGE);
    CHECK(bz_turn_attach(turn, 0, image, &err) == BZ_BAD_REQUEST && strstr(err.text, "is a video"));
    for (int twice = 0; twice < 2; twice++) {
        CHECK(bz_turn_attach(turn, 0, video, &err) == BZ_OK);
        CHECK(bz_turn_attach(turn, 1, image, &err) == BZ_OK);
    }
    const int32_t *prompt = bz_turn_prompt(turn, &n, &snapshot);
    bz_ids want = {0};
    video_prompt(m, "<bos><|turn>user\nsee<|video|><|image|>what<turn|>\n", (bz_media *[2]){video},
                 &want);
    CHECKF(snapshot && want.n == snapshot && memcmp(want.id, prompt, want.n * sizeof *prompt) == 0,
           "%zu, %u of %zu", want.n, snapshot, n);
    bz_session *s = session_or_fail(m, NULL);
    bz_job *job = NULL;
    CHECKF(bz_turn_prefill(s, turn, &job, &err) == BZ_OK && bz_job_run(job, NULL, &err) == BZ_OK,
           "%s", err.text);
    bz_job_free(job);
    bz_session_free(s);
    bz_ids_free(&want);
    bz_turn_free(turn);
    bz_media_free(video);
    bz_encoder_free(e);
}

int main(void)
{
    golden g;
    golden_open(&g, golden_path("video/golden.gguf"));
    test_choose(&g);
    bz_model *m = open_golden_or_fail("e-like", NULL);
    for (int k = 0; k < 4; k++) {
        test_prompt(m, &g, k);
        test_patches(m, &g, k);
    }
    test_join(m);
    test_session(m, "e-like");
    test_turn(m);
    begin("which models take video");
    CHECK(bz_model_takes(m, BZ_MEDIA_VIDEO));
    bz_model_free(m);
    m = open_golden_or_fail("diffusion", NULL);
    CHECK(bz_model_takes(m, BZ_MEDIA_IMAGE) && !bz_model_takes(m, BZ_MEDIA_VIDEO));
    bz_model_free(m);
    m = open_golden_or_fail("unified", NULL); /* each frame is read in one pass */
    test_session(m, "unified");
    bz_model_free(m);
    golden_close(&g);
    return finish();
}
