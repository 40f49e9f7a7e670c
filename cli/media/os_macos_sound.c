/* os_decode_sound by AudioToolbox. */
#include "cli/media/system.h"

#include <stdlib.h>
#include <string.h>

#include "cli/media/os_macos.h"

/* ---- declarations of AudioToolbox ------------------------------------------------------------ */

typedef struct audio_file *audio_file;
typedef struct ext_file *ext_file;

typedef struct audio_format {
    double rate;
    uint32_t kind, flags, packet_bytes, packet_frames, frame_bytes, channels, bits, reserved;
} audio_format;

typedef struct audio_buffers {
    uint32_t count; /* 1: samples of all channels in turn */
    struct {
        uint32_t channels, bytes;
        void *data;
    } first;
} audio_buffers;

typedef int32_t audio_read(void *user, int64_t at, uint32_t wanted, void *to, uint32_t *got);
typedef int32_t audio_write(void *user, int64_t at, uint32_t n, const void *from, uint32_t *put);
typedef int64_t audio_size(void *user);
typedef int32_t audio_resize(void *user, int64_t size);

#define CODE(a, b, c, d)                                                                           \
    ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (uint32_t)(d))

enum {
    FILE_FORMAT = CODE('f', 'f', 'm', 't'),
    CLIENT_FORMAT = CODE('c', 'f', 'm', 't'),
    PCM = CODE('l', 'p', 'c', 'm'),
    MP3_FILE = CODE('M', 'P', 'G', '3'),
    AAC_FILE = CODE('a', 'd', 't', 's'),
    FLOATS = 1,
    PACKED = 8,
};

int32_t AudioFileOpenWithCallbacks(void *user, audio_read *, audio_write *, audio_size *,
                                   audio_resize *, uint32_t kind, audio_file *);
int32_t AudioFileClose(audio_file);
int32_t ExtAudioFileWrapAudioFileID(audio_file, uint8_t writing, ext_file *);
int32_t ExtAudioFileGetProperty(ext_file, uint32_t name, uint32_t *size, void *value);
int32_t ExtAudioFileSetProperty(ext_file, uint32_t name, uint32_t size, const void *value);
int32_t ExtAudioFileRead(ext_file, uint32_t *frames, audio_buffers *);
int32_t ExtAudioFileDispose(ext_file);

#define OF_SOUND(X)                                                                                \
    X(AudioFileOpenWithCallbacks)                                                                  \
    X(AudioFileClose)                                                                              \
    X(ExtAudioFileWrapAudioFileID)                                                                 \
    X(ExtAudioFileGetProperty)                                                                     \
    X(ExtAudioFileSetProperty)                                                                     \
    X(ExtAudioFileRead)                                                                            \
    X(ExtAudioFileDispose)

typedef struct frameworks {
    OF_SOUND(POINTER)
} frameworks;

static bz_status load(frameworks *f, bz_error *err)
{
    bool complete = true;
    bz_os_library *library = framework_open(FRAMEWORK("AudioToolbox"), err);
    if (!library) {
        return BZ_BAD_FILE;
    }
    OF_SOUND(LOAD)
    bz_os_library_close(library);
    return framework_status(complete, err);
}

/* ---- a file in memory ---------------------------------------------------------------------- */

typedef struct memory_file {
    const uint8_t *bytes;
    int64_t n;
} memory_file;

static int32_t on_read(void *user, int64_t at, uint32_t wanted, void *to, uint32_t *got)
{
    const memory_file *m = user;
    const int64_t rest = at >= 0 && at < m->n ? m->n - at : 0;
    *got = wanted < rest ? wanted : (uint32_t)rest;
    if (*got) {
        memcpy(to, m->bytes + at, *got);
    }
    return 0;
}

static int64_t on_size(void *user)
{
    return ((const memory_file *)user)->n;
}

/* ---- samples ------------------------------------------------------------------------------- */

static bz_status read_all(const frameworks *f, ext_file file, samples *to, bz_error *err)
{
    const size_t each = to->channels * sizeof(float);
    float *block = malloc(SAMPLES_BLOCK * each);
    bz_status status = block ? BZ_OK : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to read sound.");
    while (status == BZ_OK && !samples_full(to)) {
        uint32_t frames = SAMPLES_BLOCK;
        audio_buffers list = {1, {to->channels, (uint32_t)(SAMPLES_BLOCK * each), block}};
        if (f->ExtAudioFileRead(file, &frames, &list) != 0) {
            to->to->cut = true;
            break;
        }
        if (frames == 0 || frames > SAMPLES_BLOCK) {
            break;
        }
        status = samples_add(to, block, frames, err);
    }
    free(block);
    return status;
}

/* The rate and the channels of the file, as floats. */
static bz_status decode(const frameworks *f, ext_file file, bz_sound *s, sound_format format,
                        bz_error *err)
{
    audio_format stored = {0};
    uint32_t size = sizeof stored;
    samples to;
    if (f->ExtAudioFileGetProperty(file, FILE_FORMAT, &size, &stored) != 0 ||
        size != sizeof stored || !(stored.rate >= 1 && stored.rate <= UINT32_MAX)) {
        return system_sound_damaged(format, err);
    }
    const bz_status status = samples_begin(&to, s, stored.channels, (int64_t)stored.rate, err);
    if (status != BZ_OK) {
        return status;
    }
    const uint32_t each = stored.channels * (uint32_t)sizeof(float);
    const audio_format floats = {
        stored.rate, PCM, FLOATS | PACKED, each, 1, each, stored.channels, 8 * sizeof(float), 0};
    if (f->ExtAudioFileSetProperty(file, CLIENT_FORMAT, sizeof floats, &floats) != 0) {
        return system_sound_damaged(format, err);
    }
    return read_all(f, file, &to, err);
}

bz_status os_decode_sound(bz_sound *s, sound_format format, const uint8_t *bytes, size_t n,
                          bz_error *err)
{
    frameworks loaded, *f = &loaded;
    memory_file memory = {bytes, (int64_t)n};
    audio_file inner = NULL;
    ext_file file = NULL;
    bz_status status = load(f, err);
    if (status != BZ_OK) {
        return status;
    }
    /* These two have no signature to be recognized by. */
    const uint32_t kind = format == SOUND_MP3 ? MP3_FILE : format == SOUND_AAC ? AAC_FILE : 0;
    if (f->AudioFileOpenWithCallbacks(&memory, on_read, NULL, on_size, NULL, kind, &inner) != 0) {
        return bz_fail(err, BZ_BAD_FILE,
                       "This macOS cannot decode the %s file: it lacks a decoder, or the file is "
                       "damaged; convert it to WAV.",
                       sound_names[format]);
    }
    status = f->ExtAudioFileWrapAudioFileID(inner, 0, &file) == 0
                 ? decode(f, file, s, format, err)
                 : system_sound_damaged(format, err);
    if (file) {
        f->ExtAudioFileDispose(file);
    }
    f->AudioFileClose(inner);
    return status;
}
