#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sndfile.h>

#include "cli/media/decode.h"
#include "cli/os.h"

enum {
    MAX_SECONDS = 3600 + 60, /* more than the encoder accepts, which then reports the limit */
    BLOCK = 16384,           /* frames per read */
};

typedef struct memory_file {
    const uint8_t *bytes;
    sf_count_t n, at;
} memory_file;

static sf_count_t file_length(void *user)
{
    return ((memory_file *)user)->n;
}

static sf_count_t file_seek(sf_count_t offset, int whence, void *user)
{
    memory_file *f = user;
    const sf_count_t base = whence == SEEK_CUR ? f->at : whence == SEEK_END ? f->n : 0;
    if (offset >= -base && offset <= f->n - base) {
        f->at = base + offset;
    }
    return f->at;
}

static sf_count_t file_read(void *to, sf_count_t count, void *user)
{
    memory_file *f = user;
    const sf_count_t n = count < f->n - f->at ? count : f->n - f->at;
    memcpy(to, f->bytes + f->at, (size_t)(n > 0 ? n : 0));
    f->at += n;
    return n;
}

static sf_count_t file_write(const void *from, sf_count_t count, void *user)
{
    (void)from, (void)count, (void)user;
    return 0;
}

static sf_count_t file_tell(void *user)
{
    return ((memory_file *)user)->at;
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

/* Mixes each block to mono as it is read, so that memory does not grow with the channel count. */
static bz_status read_all(bz_sound *s, SNDFILE *f, const SF_INFO *info, bz_error *err)
{
    const size_t channels = (size_t)info->channels,
                 max_frames = (size_t)info->samplerate * MAX_SECONDS;
    float *block = malloc(BLOCK * channels * sizeof *block);
    size_t cap = 0;
    bz_status status = block ? BZ_OK : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to read sound.");
    while (status == BZ_OK && s->frames < max_frames) {
        const sf_count_t got = sf_readf_float(f, block, BLOCK);
        if (got <= 0) {
            break;
        }
        for (size_t i = 0; i < (size_t)got * channels; i++) {
            block[i] = isfinite(block[i]) ? block[i] : 0.0f;
        }
        mix_to_mono(block, (size_t)got, channels);
        if (s->frames + (size_t)got > cap) {
            cap = 2 * cap + BLOCK;
            float *more = realloc(s->pcm, cap * sizeof *more);
            if (!more) {
                status = bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for %zu samples of sound.", cap);
                break;
            }
            s->pcm = more;
        }
        memcpy(s->pcm + s->frames, block, (size_t)got * sizeof *block);
        s->frames += (size_t)got;
    }
    free(block);
    s->rate = (uint32_t)info->samplerate;
    s->cut = s->frames < max_frames &&
             (sf_error(f) != SF_ERR_NO_ERROR || (info->frames > 0 && info->frames < INT64_MAX / 2 &&
                                                 (sf_count_t)s->frames < info->frames));
    return status;
}

/* ---- MP3: libsndfile uses libmpg123, which prints warnings to stderr ------------------------- */

static bool is_mp3(const uint8_t *b, size_t n)
{
    return n >= 3 && (memcmp(b, "ID3", 3) == 0 || (b[0] == 0xff && (b[1] & 0xe0) == 0xe0));
}

static bz_status refuse(const uint8_t *b, size_t n, bz_error *err)
{
    const char *kind = is_mp3(b, n)                          ? "MP3"
                       : n >= 4 && memcmp(b, "OggS", 4) == 0 ? "OGG"
                       : n >= 4 && memcmp(b, "fLaC", 4) == 0 ? "FLAC"
                                                             : NULL;
    return kind ? bz_fail(err, BZ_BAD_FILE, "The %s file is damaged or cut off.", kind)
                : bz_fail(err, BZ_BAD_FILE,
                          "This file is not a sound that Bezel reads (WAV, FLAC, OGG, MP3).");
}

/* Is an OGG file cut off? It does not store its length, but each page does: the last one is then
 * incomplete. */
static bool ogg_is_cut(const uint8_t *b, size_t n)
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

static bz_status decode_any(bz_sound *s, const uint8_t *bytes, size_t n, bz_error *err)
{
    SF_VIRTUAL_IO io = {file_length, file_seek, file_read, file_write, file_tell};
    memory_file file = {bytes, (sf_count_t)n, 0};
    SF_INFO info = {0};
    SNDFILE *f = sf_open_virtual(&io, SFM_READ, &info, &file);
    if (!f) {
        return refuse(bytes, n, err);
    }
    bz_status status =
        info.channels > 0 && info.channels <= 64 && info.samplerate >= BZ_AUDIO_MIN_RATE &&
                info.samplerate <= BZ_AUDIO_MAX_RATE
            ? read_all(s, f, &info, err)
            : bz_fail(err, BZ_BAD_FILE,
                      "The sound file states %d channels at %d Hz, which is not supported.",
                      info.channels, info.samplerate);
    sf_close(f);
    s->cut = s->cut || ogg_is_cut(bytes, n);
    if (status == BZ_OK && s->frames == 0) {
        status =
            bz_fail(err, BZ_BAD_FILE, "The sound file has no samples; it is probably cut off.");
    }
    if (status != BZ_OK) {
        free(s->pcm);
        *s = (bz_sound){0};
    }
    return status;
}

bz_status decode_other_sound(bz_sound *s, const uint8_t *bytes, size_t n, bz_error *err)
{
    if (!is_mp3(bytes, n)) {
        return decode_any(s, bytes, n, err);
    }
    const int before = cli_os_silence();
    const bz_status status = decode_any(s, bytes, n, err);
    cli_os_restore(before);
    return status;
}
