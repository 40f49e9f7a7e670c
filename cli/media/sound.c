#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sndfile.h>

#include "cli/media/samples.h"
#include "cli/os.h"

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

static bz_status read_all(samples *to, SNDFILE *f, const SF_INFO *info, bz_error *err)
{
    float *block = malloc((size_t)SAMPLES_BLOCK * to->channels * sizeof *block);
    bz_status status = block ? BZ_OK : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to read sound.");
    while (status == BZ_OK && !samples_full(to)) {
        const sf_count_t got = sf_readf_float(f, block, SAMPLES_BLOCK);
        if (got <= 0) {
            break;
        }
        status = samples_add(to, block, (size_t)got, err);
    }
    free(block);
    to->to->cut = !samples_full(to) && (sf_error(f) != SF_ERR_NO_ERROR ||
                                        (info->frames > 0 && info->frames < INT64_MAX / 2 &&
                                         (sf_count_t)to->to->frames < info->frames));
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

static bz_status decode_any(bz_sound *s, const uint8_t *bytes, size_t n, bz_error *err)
{
    SF_VIRTUAL_IO io = {file_length, file_seek, file_read, file_write, file_tell};
    memory_file file = {bytes, (sf_count_t)n, 0};
    SF_INFO info = {0};
    SNDFILE *f = sf_open_virtual(&io, SFM_READ, &info, &file);
    if (!f) {
        return refuse(bytes, n, err);
    }
    samples to;
    bz_status status = samples_begin(&to, s, info.channels, info.samplerate, err);
    if (status == BZ_OK) {
        status = read_all(&to, f, &info, err);
    }
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
