#include "cli/media/samples.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SECONDS = 3600 + 60 }; /* more than the encoder accepts, which then reports the limit */

bz_status samples_begin(samples *s, bz_sound *to, int64_t channels, int64_t rate, bz_error *err)
{
    if (channels <= 0 || channels > 64 || rate < BZ_AUDIO_MIN_RATE || rate > BZ_AUDIO_MAX_RATE) {
        return bz_fail(err, BZ_BAD_FILE,
                       "The sound file states %lld channels at %lld Hz, which is not supported.",
                       (long long)channels, (long long)rate);
    }
    *s = (samples){to, 0, (size_t)rate * MAX_SECONDS, (uint32_t)channels};
    to->rate = (uint32_t)rate;
    return BZ_OK;
}

/* The mean of the channels, in place: block[0 .. frames) is the result. */
static void mix_to_mono(float *block, size_t frames, size_t channels)
{
    for (size_t i = 0; channels > 1 && i < frames; i++) {
        double sum = 0;
        for (size_t c = 0; c < channels; c++) {
            sum += (double)block[i * channels + c];
        }
        block[i] = (float)(sum / (double)channels);
    }
}

bz_status samples_add(samples *s, float *block, size_t frames, bz_error *err)
{
    bz_sound *to = s->to;
    frames = frames < s->max_frames - to->frames ? frames : s->max_frames - to->frames;
    for (size_t i = 0; i < frames * s->channels; i++) {
        block[i] = isfinite(block[i]) ? block[i] : 0.0f;
    }
    mix_to_mono(block, frames, s->channels);
    if (to->frames + frames > s->room) {
        const size_t room = 2 * s->room + (frames > SAMPLES_BLOCK ? frames : SAMPLES_BLOCK);
        float *more = realloc(to->pcm, room * sizeof *more);
        if (!more) {
            return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for %zu samples of sound.", room);
        }
        to->pcm = more;
        s->room = room;
    }
    memcpy(to->pcm + to->frames, block, frames * sizeof *block);
    to->frames += frames;
    return BZ_OK;
}

bool ogg_is_cut(const uint8_t *b, size_t n)
{
    enum { HEADER = 27 }; /* bytes; the last one is the number of segments, whose sizes follow */
    size_t at = 0;
    while (n - at >= 4 && memcmp(b + at, "OggS", 4) == 0) {
        size_t len = HEADER + (n - at >= HEADER ? b[at + HEADER - 1] : 0);
        for (size_t i = HEADER, segments = len; i < segments && at + i < n; i++) {
            len += b[at + i];
        }
        if (len > n - at) {
            return true;
        }
        at += len;
    }
    return false;
}
