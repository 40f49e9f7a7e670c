/* Preprocessing of images and audio: sizes, resampled bytes, patches and mel features against
 * Hugging Face's; WAV files and resampling against known results. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "media/image.h"
#include "media/mel.h"
#include "media/resample.h"
#include "bezel_media.h"
#include "support/check.h"
#include "support/forward.h"
#include "support/golden.h"

static const uint8_t *bytes_of(const golden *g, bz_size *size, const char *name)
{
    const bz_gguf_tensor *t = bz_gguf_find_tensor(&g->gguf, name);
    *size = t ? (bz_size){(uint32_t)t->ne[2], (uint32_t)t->ne[1]} : (bz_size){0, 0};
    return t ? g->map.data + t->offset : NULL;
}

/* ---- images ---------------------------------------------------------------- */

static void test_sizes(const golden *g)
{
    begin("target sizes of all budgets");
    size_t n;
    const int32_t *rows = golden_i32(g, &n, "sizes");
    CHECK(rows && n == 600);
    for (size_t i = 0; i < n; i += 6) {
        const int32_t *r = rows + i;
        bz_size to = {0, 0};
        bz_error err = {0};
        const bz_status status =
            bz_image_fit((bz_size){(uint32_t)r[0], (uint32_t)r[1]}, (uint32_t)r[2], &to, &err);
        CHECKF((status == BZ_OK) == (r[3] != 0), "%dx%d budget %d: %s", r[0], r[1], r[2], err.text);
        CHECKF((int32_t)to.height == r[3] && (int32_t)to.width == r[4], "%dx%d budget %d: %ux%u",
               r[0], r[1], r[2], to.height, to.width);
        CHECK((int32_t)(to.height / BZ_TOKEN_SIDE * (to.width / BZ_TOKEN_SIDE)) == r[5]);
    }
    begin("target sizes with other patches");
    const uint32_t other[][7] = {
        {16, 256, 1, 512, 512, 256, 256},  {10, 200, 1, 50, 10000, 10, 2000},
        {16, 2304, 6, 2785, 34, 6144, 96}, {4, 64, 2, 50, 1000, 8, 128},
        {5, 100, 3, 100, 100, 45, 45},     {5, 20, 3, 5, 100, 15, 30}};
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        const uint32_t *o = other[i];
        bz_size to = {0, 0};
        CHECK(bz_image_target((bz_size){o[3], o[4]}, o[0], o[2], o[1], &to) && to.height == o[5] &&
              to.width == o[6]);
    }
    begin("images that are refused");
    const bz_size bad[] = {{0, 5}, {5, 0}, {10000, 10000}, {1, 2000000}, {UINT32_MAX, UINT32_MAX}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        bz_size to;
        bz_error err = {0};
        CHECK(bz_image_fit(bad[i], 0, &to, &err) == BZ_BAD_REQUEST && err.text[0]);
    }
    bz_size to;
    CHECK(bz_image_fit((bz_size){100, 100}, 1121, &to, NULL) == BZ_BAD_REQUEST);
    CHECK(bz_image_fit((bz_size){1, 10000}, 0, &to, NULL) == BZ_OK && to.height == 48 &&
          to.width == 13440);
}

static uint64_t fnv(const uint8_t *p, size_t n)
{
    uint64_t h = 0xCBF29CE484222325u;
    for (size_t i = 0; i < n; i++) {
        h = (h ^ p[i]) * 0x100000001B3u;
    }
    return h;
}

static void test_resize(const golden *g, const char *name, uint32_t budget, const char *sums_name)
{
    begin("resize %s for %u tokens", name, budget);
    char rgb_name[32];
    snprintf(rgb_name, sizeof rgb_name, "%s.rgb", name);
    bz_size from, to;
    size_t n;
    const uint8_t *rgb = bytes_of(g, &from, rgb_name);
    const int32_t *sums = golden_i32(g, &n, "%s", sums_name);
    if (!CHECK(rgb && sums && n > 0)) {
        return;
    }
    bz_error err = {0};
    bz_resize *r = NULL;
    CHECKF(bz_image_fit(from, budget, &to, &err) == BZ_OK &&
               bz_resize_new(&r, rgb, from, to, &err) == BZ_OK,
           "%s", err.text);
    while (r && !bz_resize_step(r)) {
    }
    for (size_t row = 0; r && row < n / 2; row++) {
        uint64_t want;
        memcpy(&want, sums + 2 * row, sizeof want);
        const uint8_t *pixels = bz_resize_pixels(r) + row * to.width * 3;
        if (!CHECKF(fnv(pixels, (size_t)to.width * 3) == want, "row %zu differs", row)) {
            break;
        }
    }
    bz_resize_free(r);
}

static void test_patches(const golden *g)
{
    begin("patches");
    bz_size size;
    const uint8_t *rgb = bytes_of(g, &size, "image.2.rgb");
    size_t n;
    const float *want =
        golden_f32(g, &n, "image.2.patches"); /* in [0, 1], order row, column, channel */
    const uint32_t which[] = {0, 1, 27, 52, 53};
    float *all = calloc((size_t)size.width * size.height * 3, sizeof *all);
    if (!CHECK(rgb && want && n == 5 * 768 && all)) {
        return;
    }
    bz_image_patches(rgb, size, 16, 1.0f / 255.0f, 0.0f, all);
    double worst = 0;
    for (size_t p = 0; p < 5; p++) {
        for (size_t pixel = 0; pixel < 256; pixel++) {
            for (size_t c = 0; c < 3; c++) {
                const float got = all[which[p] * 768 + c * 256 + pixel];
                worst = fmax(worst, fabs((double)got - (double)want[p * 768 + pixel * 3 + c]));
            }
        }
    }
    CHECKF(worst < 1e-6, "off by %g", worst);
    free(all);
}

/* ---- sound --------------------------------------------------------------------- */

static void test_mel(const golden *g)
{
    begin("frames and soft tokens of clips");
    size_t n, n_want;
    const int32_t *lengths = golden_i32(g, &n, "audio_lengths");
    CHECK(lengths && n > 0);
    for (size_t i = 0; i < n; i += 3) {
        const size_t samples =
            (size_t)(lengths[i] < BZ_CLIP_SAMPLES ? lengths[i] : BZ_CLIP_SAMPLES);
        CHECKF((int32_t)bz_mel_frames(samples) == lengths[i + 1], "%d samples", lengths[i]);
        CHECK((bz_mel_frames(samples) + 3) / 4 == (uint32_t)lengths[i + 2]);
    }
    bz_mel *mel = bz_mel_new();
    const char *clips[] = {"audio.0", "mel.0", "mel.1", "mel.2", "mel.3"};
    for (size_t i = 0; mel && i < sizeof clips / sizeof *clips; i++) {
        begin("mel features of %s", clips[i]);
        const float *pcm = golden_f32(g, &n, "%s.pcm", clips[i]),
                    *want = golden_f32(g, &n_want, "%s.features", clips[i]);
        const uint32_t frames = bz_mel_frames(n);
        if (!CHECK(pcm && want && n_want == (size_t)frames * BZ_MEL_BINS)) {
            continue;
        }
        float *got = calloc(n_want, sizeof *got);
        bz_mel_run(mel, pcm, n, 0, frames, got);
        const double d = max_difference(got, want, n_want);
        CHECKF(d < 1e-3, "off by %g", d);
        float again[BZ_MEL_BINS]; /* a frame by itself is the same frame */
        bz_mel_run(mel, pcm, n, frames - 1, 1, again);
        CHECK(memcmp(again, got + (size_t)(frames - 1) * BZ_MEL_BINS, sizeof again) == 0);
        free(got);
    }
    bz_mel_free(mel);
}

static double level(const float *x, size_t n) /* rms of the middle, away from the edges */
{
    double sum = 0;
    for (size_t i = n / 4; i < n * 3 / 4; i++) {
        sum += (double)x[i] * (double)x[i];
    }
    return sqrt(sum / (double)(n / 2));
}

static void test_resample(void)
{
    const uint32_t rates[] = {8000, 11025, 22050, 44100, 44101, 48000, 96000};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        begin("resampling from %u", rates[i]);
        const uint32_t rate = rates[i];
        const size_t n = rate;
        float *x = malloc(n * sizeof *x), *y = NULL;
        size_t m = 0;
        const double hz = 1000;
        for (size_t t = 0; t < n; t++) {
            x[t] = (float)sin(6.283185307179586 * hz * (double)t / rate);
        }
        CHECK(bz_resample(x, n, rate, 16000, &y, &m, NULL) == BZ_OK && m == 16000);
        double worst = 0;
        for (size_t t = m / 4; t < m * 3 / 4; t++) {
            worst =
                fmax(worst, fabs((double)y[t] - sin(6.283185307179586 * hz * (double)t / 16000)));
        }
        CHECKF(worst < 1e-3, "a tone is off by %g", worst);
        free(y);
        if (rate > 24000) { /* frequencies above the lower rate's limit must vanish, not alias */
            for (size_t t = 0; t < n; t++) {
                x[t] = (float)sin(6.283185307179586 * 11000 * (double)t / rate);
            }
            CHECK(bz_resample(x, n, rate, 16000, &y, &m, NULL) == BZ_OK);
            CHECKF(level(y, m) < 1e-4, "a tone above 8 kHz is left at %g", level(y, m));
            free(y);
        }
        free(x);
    }
    begin("rates that are refused");
    float *y;
    size_t m;
    float x = 0;
    bz_error err = {0};
    CHECK(bz_resample(&x, 1, 10, 16000, &y, &m, &err) == BZ_BAD_REQUEST && err.text[0]);
    CHECK(bz_resample(&x, 0, 8000, 16000, &y, &m, &err) == BZ_OK && m == 0);
    free(y);
}

/* A WAV file of `frames` frames in memory; value(frame, channel) in [-1, 1). */
static size_t make_wav(uint8_t *out, unsigned code, unsigned bits, unsigned channels, unsigned rate,
                       unsigned frames)
{
    const unsigned data = frames * channels * bits / 8;
    memcpy(out, "RIFF\0\0\0\0WAVEfmt \20\0\0\0", 20);
    const unsigned head[] = {code, channels, rate, 0, 0, bits};
    uint8_t *p = out + 20;
    for (int i = 0; i < 6; i++) {
        for (int b = 0; b < (i == 2 || i == 3 ? 4 : 2); b++) {
            *p++ = (uint8_t)(head[i] >> 8 * b);
        }
    }
    memcpy(p, "data", 4);
    for (int b = 0; b < 4; b++) {
        p[4 + b] = (uint8_t)(data >> 8 * b);
    }
    p += 8;
    for (unsigned i = 0; i < frames * channels; i++) {
        const double v = i % channels ? -0.25 : 0.75; /* a mean of 0.25 for two channels */
        const float f = (float)v;
        const int64_t q = bits == 8
                              ? (int64_t)(v * 128) + 128
                              : (int64_t)(v * (double)(1ull << (bits - 1)) * (code == 3 ? 0 : 1));
        if (code == 3) {
            if (bits == 64) {
                memcpy(p, &v, 8);
            } else {
                memcpy(p, &f, 4);
            }
        } else {
            for (unsigned b = 0; b < bits / 8; b++) {
                p[b] = (uint8_t)(q >> 8 * b);
            }
        }
        p += bits / 8;
    }
    return (size_t)(p - out);
}

static void test_wav(void)
{
    uint8_t file[4096];
    const unsigned kinds[][2] = {{1, 8}, {1, 16}, {1, 24}, {1, 32}, {3, 32}, {3, 64}};
    bz_sound s;
    bz_error err = {0};
    for (size_t k = 0; k < 6; k++) {
        begin("wav of kind %u, %u bits", kinds[k][0], kinds[k][1]);
        const size_t n = make_wav(file, kinds[k][0], kinds[k][1], 2, 22050, 50);
        CHECKF(bz_wav_read(&s, file, n, &err) == BZ_OK && s.frames == 50 && s.rate == 22050 &&
                   !s.cut,
               "%s", err.text);
        CHECK(s.pcm && fabs((double)s.pcm[0] - 0.25) < 1e-6 &&
              fabs((double)s.pcm[49] - 0.25) < 1e-6);
        free(s.pcm);
        CHECK(bz_wav_read(&s, file, n - 1, &err) == BZ_OK && s.cut && s.frames == 49);
        free(s.pcm);
        for (size_t cut = 0; cut < 44; cut++) {
            CHECK(bz_wav_read(&s, file, cut, &err) == BZ_BAD_FILE && err.text[0]);
        }
    }
    begin("wav files that are refused");
    size_t n = make_wav(file, 2, 4, 1, 16000, 10);
    CHECK(bz_wav_read(&s, file, n, &err) == BZ_BAD_FILE);
    n = make_wav(file, 1, 16, 0, 16000, 10);
    CHECK(bz_wav_read(&s, file, n, &err) == BZ_BAD_FILE);
    n = make_wav(file, 1, 16, 1, 0, 10);
    CHECK(bz_wav_read(&s, file, n, &err) == BZ_BAD_FILE);
}

int main(void)
{
    golden g;
    golden_open(&g, golden_path("media/golden.gguf"));
    test_sizes(&g);
    test_resize(&g, "image.0", 70, "image.0.resized.sums");
    test_resize(&g, "photo", 70, "photo.resized.70.sums");
    test_resize(&g, "photo", 280, "photo.resized.280.sums");
    test_patches(&g);
    test_mel(&g);
    test_resample();
    test_wav();
    golden_close(&g);
    return finish();
}
