/* Any bytes as a WAV file; as the size of an image with its pixels; as samples: nothing is read
 * that is not there, and what comes out has the size it must have. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "media/image.h"
#include "media/mel.h"
#include "media/resample.h"
#include "bezel_media.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void sound(const uint8_t *data, size_t size)
{
    bz_sound s;
    bz_error err = {0};
    if (bz_wav_read(&s, data, size, &err) != BZ_OK) {
        must(err.text[0] && !s.pcm);
        return;
    }
    float *pcm = NULL, row[BZ_MEL_BINS];
    size_t n = 0;
    must(s.frames <= size);
    if (s.frames < 20000 &&
        bz_resample(s.pcm, s.frames, s.rate, BZ_SAMPLE_RATE, &pcm, &n, &err) == BZ_OK) {
        bz_mel *mel = bz_mel_new();
        const uint32_t frames = bz_mel_frames(n);
        for (uint32_t i = 0; mel && i < frames && i < 50; i++) {
            bz_mel_run(mel, pcm, n, frames - 1 - i, 1, row);
        }
        bz_mel_free(mel);
    }
    free(pcm);
    free(s.pcm);
}

static void image(const uint8_t *data, size_t size)
{
    if (size < 6) {
        return;
    }
    const bz_size from = {(uint32_t)(data[0] | data[1] << 8), (uint32_t)(data[2] | data[3] << 8)};
    const uint32_t budget = data[4] + (uint32_t)(data[5] % 5) * 256;
    bz_size to;
    bz_error err = {0};
    if (bz_image_fit(from, budget, &to, &err) != BZ_OK) {
        must(err.text[0]);
        return;
    }
    const uint32_t tokens = to.height / BZ_TOKEN_SIDE * (to.width / BZ_TOKEN_SIDE);
    must(to.height % BZ_TOKEN_SIDE == 0 && to.width % BZ_TOKEN_SIDE == 0 && tokens > 0);
    must(tokens <= (budget ? budget : BZ_DEFAULT_BUDGET));
    const size_t n = (size_t)from.height * from.width * 3;
    if (n > 1 << 20 || tokens > 100) {
        return;
    }
    uint8_t *rgb = malloc(n);
    for (size_t i = 0; i < n; i++) {
        rgb[i] = data[i % size];
    }
    bz_resize *r = NULL;
    must(bz_resize_new(&r, rgb, from, to, &err) == BZ_OK);
    while (!bz_resize_step(r)) {
    }
    float *patches = malloc((size_t)to.height * to.width * 3 * sizeof *patches);
    bz_image_patches(bz_resize_pixels(r), to, BZ_PATCH, 1.0f, 0.0f, patches);
    for (size_t i = 0; i < (size_t)to.height * to.width * 3; i++) {
        must(patches[i] >= 0 && patches[i] <= 255);
    }
    free(patches);
    bz_resize_free(r);
    free(rgb);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sound(data, size);
    image(data, size);
    return 0;
}
