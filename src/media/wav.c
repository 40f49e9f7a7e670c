/* WAV decoder. */
#include "bezel_media.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/little.h"
#include "media/resample.h"

enum { FORMAT_PCM = 1, FORMAT_FLOAT = 3, FORMAT_EXTENSIBLE = 0xFFFE, MAX_CHANNELS = 64 };

typedef struct format {
    uint16_t code, channels, bits;
    uint32_t rate;
} format;

static bool is_wav(const uint8_t *b, size_t n)
{
    return n >= 12 && (memcmp(b, "RIFF", 4) == 0 || memcmp(b, "RF64", 4) == 0) &&
           memcmp(b + 8, "WAVE", 4) == 0;
}

/* Loud sound exceeds 1; beyond this a file is damaged, and the squares of its spectrum overflow. */
#define LOUDEST 1e6f

static float sample(const uint8_t *p, const format *f)
{
    if (f->code == FORMAT_FLOAT) {
        float v;
        double d;
        if (f->bits == 32) {
            memcpy(&v, p, sizeof v);
        } else {
            memcpy(&d, p, sizeof d);
            v = (float)d;
        }
        return !isfinite(v) ? 0.0f : v > LOUDEST ? LOUDEST : v < -LOUDEST ? -LOUDEST : v;
    }
    switch (f->bits) {
    case 8: return ((float)p[0] - 128.0f) / 128.0f;
    case 16: return (float)(int16_t)bz_le16(p) / 32768.0f;
    case 24:
        return (float)((int32_t)((uint32_t)p[0] << 8 | (uint32_t)p[1] << 16 |
                                 (uint32_t)p[2] << 24) >>
                       8) /
               8388608.0f;
    default: return (float)((double)(int32_t)bz_le32(p) / 2147483648.0);
    }
}

static bz_status read_format(format *f, const uint8_t *p, size_t n, bz_error *err)
{
    if (n < 16) {
        return bz_fail(err, BZ_BAD_FILE, "The WAV file is cut off in its header.");
    }
    *f = (format){bz_le16(p), bz_le16(p + 2), bz_le16(p + 14), bz_le32(p + 4)};
    if (f->code == FORMAT_EXTENSIBLE && n >= 26) {
        f->code = bz_le16(p + 24);
    }
    const bool pcm =
        f->code == FORMAT_PCM && (f->bits == 8 || f->bits == 16 || f->bits == 24 || f->bits == 32);
    const bool real = f->code == FORMAT_FLOAT && (f->bits == 32 || f->bits == 64);
    if (!pcm && !real) {
        return bz_fail(err, BZ_BAD_FILE,
                       "The WAV file has format %u with %u bits; PCM with 8, 16, 24 or 32 bits and "
                       "floats are supported, so convert it first.",
                       f->code, f->bits);
    }
    if (f->channels == 0 || f->channels > MAX_CHANNELS) {
        return bz_fail(err, BZ_BAD_FILE, "The WAV file has %u channels; 1 to %d are supported.",
                       f->channels, MAX_CHANNELS);
    }
    if (f->rate < BZ_AUDIO_MIN_RATE || f->rate > BZ_AUDIO_MAX_RATE) {
        return bz_fail(err, BZ_BAD_FILE,
                       "The WAV file has %u samples per second; %d to %d are supported.", f->rate,
                       BZ_AUDIO_MIN_RATE, BZ_AUDIO_MAX_RATE);
    }
    return BZ_OK;
}

static bz_status read_samples(bz_sound *s, const format *f, const uint8_t *p, size_t n,
                              bz_error *err)
{
    const size_t bytes = f->bits / 8u, frame = bytes * f->channels, frames = n / frame;
    s->pcm = malloc((frames * f->channels + 1) * sizeof *s->pcm);
    if (!s->pcm) {
        return bz_fail(err, BZ_OUT_OF_MEMORY,
                       "There is not enough memory for %zu samples of sound.", frames);
    }
    for (size_t i = 0; i < frames * f->channels; i++) {
        s->pcm[i] = sample(p + i * bytes, f);
    }
    bz_mix_to_mono(s->pcm, frames, f->channels);
    s->frames = frames;
    s->rate = f->rate;
    return BZ_OK;
}

bz_status bz_wav_read(bz_sound *s, const uint8_t *b, size_t n, bz_error *err)
{
    *s = (bz_sound){0};
    if (!is_wav(b, n)) {
        return bz_fail(err, BZ_BAD_FILE, "This is not a WAV file.");
    }
    format f = {0};
    bz_status status = BZ_OK;
    for (size_t at = 12; n - at >= 8;) { /* chunks: name, size, bytes, one of padding if odd */
        const uint8_t *chunk = b + at;
        const size_t declared = bz_le32(chunk + 4), available = n - at - 8,
                     size = declared < available ? declared : available;
        if (memcmp(chunk, "fmt ", 4) == 0) {
            status = read_format(&f, chunk + 8, size, err);
        } else if (memcmp(chunk, "data", 4) == 0) {
            if (!f.channels) {
                return bz_fail(
                    err, BZ_BAD_FILE,
                    "The WAV file has no format header before its samples; it is damaged.");
            }
            s->cut = declared > available && declared != UINT32_MAX; /* streams declare no length */
            return read_samples(s, &f, chunk + 8, size, err);
        }
        if (status != BZ_OK) {
            return status;
        }
        const size_t step = size + (size & 1);
        at = available - size >= (size & 1) ? at + 8 + step : n;
    }
    return bz_fail(err, BZ_BAD_FILE, "The WAV file has no samples; it is probably cut off.");
}
