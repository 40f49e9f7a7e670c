/* os_decode_sound by the source reader of Media Foundation, which some editions of Windows lack. */
#include "cli/media/system.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define INITGUID
#define COBJMACROS
#include "cli/media/os_windows.h"
#include <mfapi.h>
#include <mfidl.h>
#include <mfreadwrite.h>

typedef HRESULT(WINAPI mf_startup)(ULONG, DWORD);
typedef HRESULT(WINAPI mf_shutdown)(void);
typedef HRESULT(WINAPI mf_type)(IMFMediaType **);
typedef HRESULT(WINAPI mf_bytes)(IStream *, IMFByteStream **);
typedef HRESULT(WINAPI mf_reader)(IMFByteStream *, IMFAttributes *, IMFSourceReader **);
typedef IStream *(WINAPI memory_stream)(const BYTE *, UINT);

static const DWORD SOUND = (DWORD)MF_SOURCE_READER_FIRST_AUDIO_STREAM;

typedef struct media_foundation {
    com_library com;
    bz_os_library *platform, *reading;
    mf_shutdown *shutdown; /* NULL: not started */
    mf_type *new_type;
    IStream *stream;
    IMFByteStream *bytes;
    IMFSourceReader *reader;
} media_foundation;

typedef struct sample_kind {
    UINT32 channels, rate, bits;
    bool real; /* floats */
} sample_kind;

#define RELEASE(type, object)                                                                      \
    if (object) {                                                                                  \
        type##_Release(object);                                                                    \
    }

static void close_all(media_foundation *m)
{
    RELEASE(IMFSourceReader, m->reader)
    RELEASE(IMFByteStream, m->bytes)
    if (m->shutdown) {
        m->shutdown();
    }
    bz_os_library_close(m->reading);
    bz_os_library_close(m->platform);
    com_close(&m->com);
}

static bz_status no_decoder(sound_format format, bz_error *err)
{
    return bz_fail(err, BZ_BAD_FILE,
                   "This Windows cannot decode the %s file: it lacks a decoder, or the file is "
                   "damaged; convert it to WAV.",
                   sound_names[format]);
}

/* Starts Media Foundation and opens the file; its type is stated, as there is no name to tell it.
 */
static bz_status open_all(media_foundation *m, sound_format format, bz_error *err)
{
    static const wchar_t *const types[] = {L"audio/mpeg", L"audio/x-flac", L"audio/ogg",
                                           L"audio/vnd.dlna.adts", L"audio/mp4"};
    IMFAttributes *attributes = NULL;
    bz_error why = {0};
    const bz_status status = com_open(&m->com, err);
    if (status != BZ_OK) {
        return status;
    }
    m->platform = bz_os_library_open("mfplat.dll", &why);
    m->reading = m->platform ? bz_os_library_open("mfreadwrite.dll", &why) : NULL;
    if (!m->reading) {
        return bz_fail(err, BZ_BAD_FILE,
                       "This Windows has no Media Foundation to decode %s: %s. Install the Media "
                       "Feature Pack, or convert the file to WAV.",
                       sound_names[format], why.text);
    }
    mf_startup *start = (mf_startup *)bz_os_library_symbol(m->platform, "MFStartup");
    mf_shutdown *shutdown = (mf_shutdown *)bz_os_library_symbol(m->platform, "MFShutdown");
    m->new_type = (mf_type *)bz_os_library_symbol(m->platform, "MFCreateMediaType");
    mf_bytes *new_bytes =
        (mf_bytes *)bz_os_library_symbol(m->platform, "MFCreateMFByteStreamOnStream");
    mf_reader *new_reader =
        (mf_reader *)bz_os_library_symbol(m->reading, "MFCreateSourceReaderFromByteStream");
    if (!start || !shutdown || !m->new_type || !new_bytes || !new_reader ||
        FAILED(start(MF_VERSION, MFSTARTUP_LITE))) {
        return no_decoder(format, err);
    }
    m->shutdown = shutdown;
    if (FAILED(new_bytes(m->stream, &m->bytes))) {
        return no_decoder(format, err);
    }
    if (SUCCEEDED(
            IMFByteStream_QueryInterface(m->bytes, &IID_IMFAttributes, (void **)&attributes))) {
        IMFAttributes_SetString(attributes, &MF_BYTESTREAM_CONTENT_TYPE, types[format]);
        IMFAttributes_Release(attributes);
    }
    return SUCCEEDED(new_reader(m->bytes, NULL, &m->reader)) ? BZ_OK : no_decoder(format, err);
}

/* ---- samples ------------------------------------------------------------------------ */

/* Asks for a kind of samples; a decoder has floats or integers, or both. */
static bool ask_for(media_foundation *m, const GUID *kind)
{
    IMFMediaType *type = NULL;
    const bool ok = SUCCEEDED(m->new_type(&type)) &&
                    SUCCEEDED(IMFMediaType_SetGUID(type, &MF_MT_MAJOR_TYPE, &MFMediaType_Audio)) &&
                    SUCCEEDED(IMFMediaType_SetGUID(type, &MF_MT_SUBTYPE, kind)) &&
                    SUCCEEDED(IMFSourceReader_SetCurrentMediaType(m->reader, SOUND, NULL, type));
    RELEASE(IMFMediaType, type)
    return ok;
}

static bool read_kind(media_foundation *m, sample_kind *k)
{
    IMFMediaType *type = NULL;
    GUID subtype;
    const bool ok =
        SUCCEEDED(IMFSourceReader_GetCurrentMediaType(m->reader, SOUND, &type)) &&
        SUCCEEDED(IMFMediaType_GetGUID(type, &MF_MT_SUBTYPE, &subtype)) &&
        SUCCEEDED(IMFMediaType_GetUINT32(type, &MF_MT_AUDIO_NUM_CHANNELS, &k->channels)) &&
        SUCCEEDED(IMFMediaType_GetUINT32(type, &MF_MT_AUDIO_SAMPLES_PER_SECOND, &k->rate)) &&
        SUCCEEDED(IMFMediaType_GetUINT32(type, &MF_MT_AUDIO_BITS_PER_SAMPLE, &k->bits));
    RELEASE(IMFMediaType, type)
    k->real = ok && IsEqualGUID(&subtype, &MFAudioFormat_Float);
    return ok && (k->real ? k->bits == 32 : k->bits == 16 || k->bits == 24 || k->bits == 32);
}

static float one_sample(const uint8_t *b, const sample_kind *k)
{
    float real;
    uint32_t v = 0;
    if (k->real) {
        memcpy(&real, b, sizeof real);
        return real;
    }
    for (UINT32 i = 0; i < k->bits / 8; i++) { /* into the upper bytes */
        v |= (uint32_t)b[i] << (32 - k->bits + 8 * i);
    }
    return (float)((double)(int32_t)v / 2147483648.0);
}

static bz_status add_bytes(samples *to, const uint8_t *b, size_t n, const sample_kind *k,
                           bz_error *err)
{
    const size_t each = k->bits / 8, frames = n / (each * k->channels);
    float *block = malloc((frames + 1) * k->channels * sizeof *block);
    if (!block) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to read sound.");
    }
    for (size_t i = 0; i < frames * k->channels; i++) {
        block[i] = one_sample(b + i * each, k);
    }
    const bz_status status = samples_add(to, block, frames, err);
    free(block);
    return status;
}

static bz_status add_sample(samples *to, IMFSample *sample, const sample_kind *k, bz_error *err)
{
    IMFMediaBuffer *buffer = NULL;
    BYTE *bytes = NULL;
    DWORD n = 0;
    bz_status status = BZ_OK;
    if (FAILED(IMFSample_ConvertToContiguousBuffer(sample, &buffer)) ||
        FAILED(IMFMediaBuffer_Lock(buffer, &bytes, NULL, &n))) {
        status = bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to read sound.");
    } else {
        status = add_bytes(to, bytes, n, k, err);
        IMFMediaBuffer_Unlock(buffer);
    }
    RELEASE(IMFMediaBuffer, buffer)
    return status;
}

/* A decoder may learn channels and rate from the first samples only, but they must not change. */
static bool same_kind(media_foundation *m, sample_kind *k, const bz_sound *s)
{
    const sample_kind before = *k;
    return read_kind(m, k) &&
           (s->frames == 0 || (k->channels == before.channels && k->rate == before.rate));
}

static bz_status read_all(media_foundation *m, bz_sound *s, sound_format format, atomic_uint *steps,
                          bz_error *err)
{
    sample_kind k;
    samples to;
    IMFSourceReader_SetStreamSelection(m->reader, (DWORD)MF_SOURCE_READER_ALL_STREAMS, FALSE);
    if (FAILED(IMFSourceReader_SetStreamSelection(m->reader, SOUND, TRUE)) ||
        (!ask_for(m, &MFAudioFormat_Float) && !ask_for(m, &MFAudioFormat_PCM)) ||
        !read_kind(m, &k)) {
        return no_decoder(format, err);
    }
    bz_status status = samples_begin(&to, s, k.channels, k.rate, err);
    while (status == BZ_OK && !samples_full(&to)) {
        IMFSample *sample = NULL;
        DWORD stream, flags = 0;
        LONGLONG time;
        atomic_fetch_add(steps, 1);
        const HRESULT got =
            IMFSourceReader_ReadSample(m->reader, SOUND, 0, &stream, &flags, &time, &sample);
        if (FAILED(got) || flags & MF_SOURCE_READERF_ERROR) {
            s->cut = true;
            flags |= MF_SOURCE_READERF_ENDOFSTREAM;
        } else if (flags & MF_SOURCE_READERF_CURRENTMEDIATYPECHANGED) {
            status = same_kind(m, &k, s) ? BZ_OK : system_sound_damaged(format, err);
            if (status == BZ_OK && s->frames == 0) {
                status = samples_begin(&to, s, k.channels, k.rate, err);
            }
        }
        if (status == BZ_OK && sample) {
            status = add_sample(&to, sample, &k, err);
        }
        RELEASE(IMFSample, sample)
        if (flags & MF_SOURCE_READERF_ENDOFSTREAM) {
            break;
        }
    }
    return status;
}

/* ---- a thread that may be given up --------------------------------------------------------- */

/* What decodes here is other programs' code as well, and a damaged file can make it wait for ever.
 * It has a thread of its own, with a copy of the file, and is given up when it makes no step for
 * PATIENCE. */
enum { PATIENCE = 60 * 1000 }; /* milliseconds */

enum { RUNNING, FINISHED, GIVEN_UP };

typedef struct decoding {
    media_foundation m;
    sound_format format;
    bz_sound sound;
    bz_status status;
    bz_error err;
    atomic_uint steps;
    atomic_int state; /* the second of both threads that sets it frees this */
} decoding;

static void decoding_free(decoding *d)
{
    RELEASE(IStream, d->m.stream)
    free(d->sound.pcm);
    free(d);
}

static DWORD WINAPI decoding_run(void *argument)
{
    decoding *d = argument;
    d->status = open_all(&d->m, d->format, &d->err);
    if (d->status == BZ_OK) {
        d->status = read_all(&d->m, &d->sound, d->format, &d->steps, &d->err);
    }
    close_all(&d->m);
    if (atomic_exchange(&d->state, FINISHED) == GIVEN_UP) {
        decoding_free(d);
    }
    return 0;
}

/* False: it was given up, and is not the caller's any more. */
static bool wait_for(decoding *d, HANDLE thread)
{
    unsigned steps = 0;
    while (WaitForSingleObject(thread, PATIENCE) == WAIT_TIMEOUT) {
        const unsigned now = atomic_load(&d->steps);
        if (now == steps) {
            return atomic_exchange(&d->state, GIVEN_UP) == FINISHED;
        }
        steps = now;
    }
    return true;
}

static decoding *new_decoding(sound_format format, const uint8_t *bytes, size_t n)
{
    bz_os_library *shell = bz_os_library_open("shlwapi.dll", NULL);
    memory_stream *copy =
        shell ? (memory_stream *)bz_os_library_symbol(shell, "SHCreateMemStream") : NULL;
    decoding *d = copy && n <= UINT32_MAX ? calloc(1, sizeof *d) : NULL;
    if (d) {
        d->format = format;
        d->m.stream = copy(bytes, (UINT)n);
        if (!d->m.stream) {
            decoding_free(d);
            d = NULL;
        }
    }
    bz_os_library_close(shell);
    return d;
}

bz_status os_decode_sound(bz_sound *s, sound_format format, const uint8_t *bytes, size_t n,
                          bz_error *err)
{
    decoding *d = new_decoding(format, bytes, n);
    HANDLE thread = d ? CreateThread(NULL, 0, decoding_run, d, 0, NULL) : NULL;
    if (!thread) {
        if (d) {
            decoding_free(d);
        }
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to read sound.");
    }
    const bool finished = wait_for(d, thread);
    CloseHandle(thread);
    if (!finished) {
        return bz_fail(err, BZ_BAD_FILE,
                       "Windows' decoder of %s stopped at this file; it is probably damaged.",
                       sound_names[format]);
    }
    const bz_status status = d->status;
    if (status == BZ_OK) {
        *s = d->sound;
        d->sound.pcm = NULL;
    } else {
        bz_fail(err, status, "%s", d->err.text);
    }
    decoding_free(d);
    return status;
}
