/* libFuzzer target: any bytes as a WAV file. Nothing is read that is not there, and what is
 * decoded, resampled and turned into mel features is finite. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "media/mel.h"
#include "media/resample.h"
#include "bezel_media.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_SAMPLES = 800 }; /* at 16 kHz: resampling and mel features of more take too long */

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void features(const float *pcm, size_t n)
{
    static bz_mel *mel;
    float row[BZ_MEL_BINS];
    const uint32_t frames = bz_mel_frames(n);
    mel = mel ? mel : bz_mel_new();
    must(mel != NULL);
    for (uint32_t i = 0; i < frames && i < 2; i++) {
        bz_mel_run(mel, pcm, n, frames - 1 - i, 1, row);
        for (size_t k = 0; k < BZ_MEL_BINS; k++) {
            must(isfinite(row[k]));
        }
    }
}

/* Making a resampler takes 100 times as long as using it: those of some rates are kept, of the
 * others few are made. */
static void resample(const bz_sound *s)
{
    static bz_resampler *kept[8];
    static const uint32_t rates[8] = {4000, 8000, 11025, 16000, 22050, 44100, 48000, 192000};
    bz_resampler *r = NULL, **place = s->rate % 64 == 1 ? &r : NULL;
    float out[MAX_SAMPLES];
    bz_error err = {0};
    for (size_t i = 0; i < 8; i++) {
        place = rates[i] == s->rate ? &kept[i] : place;
    }
    if (place && !*place && bz_resampler_new(place, s->rate, BZ_SAMPLE_RATE, &err) != BZ_OK) {
        must(err.text[0]);
        return;
    }
    if (place) {
        const uint64_t all = bz_resampler_count(*place, s->frames);
        const size_t n = all < MAX_SAMPLES ? (size_t)all : MAX_SAMPLES;
        bz_resampler_run(*place, s->pcm, s->frames, all - n, n, out);
        features(out, n);
    }
    bz_resampler_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bz_sound s;
    bz_error err = {0};
    if (bz_wav_read(&s, data, size, &err) != BZ_OK) {
        must(err.text[0] && !s.pcm);
        return 0;
    }
    must(s.frames <= size && s.rate > 0);
    for (size_t i = 0; i < s.frames; i++) {
        must(isfinite(s.pcm[i]));
    }
    resample(&s);
    free(s.pcm);
    return 0;
}
