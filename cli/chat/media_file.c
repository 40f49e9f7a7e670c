#include "cli/chat/media_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "cli/interrupt.h"
#include "cli/media/decode.h"
#include "cli/chat/source.h"
#include "cli/term.h"

void media_file_note(void *user, const char *text)
{
    (void)user;
    fprintf(stderr, "%s(%s)%s\n", term_dim(), text, term_plain());
}

static bz_status about(const source *from, bz_error *err)
{
    const bz_error why = *err;
    return bz_fail(err, why.code, "%.120s: %s", from->name, why.text);
}

void name_mmproj_option(bz_error *err)
{
    if (err->code == BZ_UNSUPPORTED_MODEL && strstr(err->text, "mmproj")) {
        const bz_error why = *err;
        bz_fail(err, why.code, "%s Use --mmproj.", why.text);
    }
}

typedef struct watching {
    bool progress;
} watching;

static int on_event(void *user, const bz_event *e)
{
    const watching *w = user;
    if (w->progress && e->kind == BZ_EVENT_PROGRESS) {
        term_progress(e->done, e->total, "blocks");
    }
    return interrupt_stop();
}

static bz_status encode(bz_job *job, bool progress, bz_media_kind kind,
                        media_file_features *features, bz_media **media, bz_error *err)
{
    watching w = {progress};
    if (progress) {
        term_busy(kind == BZ_MEDIA_IMAGE ? "encoding the image" : "encoding the audio");
    }
    const bz_status status =
        bz_job_run(job, &(bz_host){.size = sizeof(bz_host), .event = on_event, .user = &w}, err);
    if (progress) {
        term_idle();
    }
    if (status != BZ_OK) {
        return status;
    }
    uint32_t rows, cols;
    const float *values = bz_job_features(job, &rows, &cols);
    if (features && values) {
        *features = (media_file_features){malloc((size_t)rows * cols * sizeof *values), rows, cols};
        if (!features->values) {
            return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the features.");
        }
        memcpy(features->values, values, (size_t)rows * cols * sizeof *values);
    }
    *media = bz_job_media(job);
    return BZ_OK;
}

static void note_audio(const bz_sound *s, const bz_media *m, const char *name,
                       media_file_callback note, void *user)
{
    char text[200];
    if (s->cut) {
        snprintf(text, sizeof text, "%.80s is cut off; using its %.1f seconds", name,
                 (double)s->frames / s->rate);
        note(user, text);
    }
    if (bz_media_pieces(m) > 1) {
        snprintf(text, sizeof text, "%.80s is longer than 30 seconds; encoding it in %u pieces",
                 name, bz_media_pieces(m));
        note(user, text);
    }
}

bz_status media_file_encode(bz_encoder *encoder, bz_media_kind kind, const char *path,
                            bool progress, media_file_callback note, void *user,
                            media_file_features *features, bz_media **media, bz_error *err)
{
    source from;
    rgb_image p = {0};
    bz_sound s = {0};
    bz_job *job = NULL;
    const bool noted = bz_encoder_notice(encoder) != NULL;
    bz_status status = source_open(&from, path, err);
    if (status != BZ_OK) {
        source_close(&from);
        return status; /* the error names the file */
    }
    if (from.size == 0) {
        status = bz_fail(err, BZ_BAD_FILE, "The file is empty.");
    } else if (kind == BZ_MEDIA_IMAGE) {
        status = decode_image(&p, from.data, from.size, err);
    } else {
        status = decode_sound(&s, from.data, from.size, err);
    }
    if (bz_os_map_cut(&from.map)) {
        status = bz_fail(err, BZ_BAD_FILE, "Another program shortened the file while it was read.");
    }
    if (status == BZ_OK) {
        status = kind == BZ_MEDIA_IMAGE
                     ? bz_encode_image(encoder, p.rgb, p.width, p.height, &job, err)
                     : bz_encode_audio(encoder, s.pcm, s.frames, s.rate, &job, err);
    }
    if (status == BZ_OK) {
        status = encode(job, progress, kind, features, media, err);
    }
    if (status == BZ_OK && kind == BZ_MEDIA_AUDIO && note) {
        note_audio(&s, *media, from.name, note, user);
    }
    if (status == BZ_OK && note && bz_encoder_notice(encoder) && !noted) {
        note(user, bz_encoder_notice(encoder));
    }
    name_mmproj_option(err);
    bz_job_free(job);
    image_free(&p);
    bz_free(s.pcm);
    status = status == BZ_OK || status == BZ_ABORTED ? status : about(&from, err);
    source_close(&from);
    return status;
}
