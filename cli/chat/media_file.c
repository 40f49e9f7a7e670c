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

/* Appends to the features; false: no memory. */
static bool add_features(media_file_features *f, const float *values, uint32_t rows, uint32_t cols)
{
    const size_t before = (size_t)f->rows * cols, n = (size_t)rows * cols;
    float *more = realloc(f->values, (before + n) * sizeof *more);
    if (more) {
        memcpy(more + before, values, n * sizeof *values);
        *f = (media_file_features){more, f->rows + rows, cols};
    }
    return more != NULL;
}

/* Runs and frees the job; `what`, if not NULL, begins a progress line. */
static bz_status encode(bz_job *job, const char *what, media_file_features *features,
                        bz_media **media, bz_error *err)
{
    watching w = {what != NULL};
    if (what) {
        term_busy(what);
    }
    bz_status status =
        bz_job_run(job, &(bz_host){.size = sizeof(bz_host), .event = on_event, .user = &w}, err);
    if (what) {
        term_idle();
    }
    if (status == BZ_OK) {
        uint32_t rows, cols;
        const float *values = bz_job_features(job, &rows, &cols);
        if (features && values && !add_features(features, values, rows, cols)) {
            status = bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the features.");
        } else {
            *media = bz_job_media(job);
        }
    }
    bz_job_free(job);
    return status;
}

static void note_audio(const bz_sound *s, const bz_media *m, const char *name,
                       const media_file_options *o)
{
    char text[200];
    if (s->cut) {
        snprintf(text, sizeof text, "%.80s is cut off; using its %.1f seconds", name,
                 (double)s->frames / s->rate);
        o->note(o->user, text);
    }
    if (bz_media_pieces(m) > 1) {
        snprintf(text, sizeof text, "%.80s is longer than 30 seconds; encoding it in %u pieces",
                 name, bz_media_pieces(m));
        o->note(o->user, text);
    }
}

/* ---- by kind ------------------------------------------------------------------------- */

static bz_status encode_image(bz_encoder *encoder, const source *from, const media_file_options *o,
                              bz_media **media, bz_error *err)
{
    rgb_image p = {0};
    bz_job *job = NULL;
    bz_status status = decode_image(&p, from->data, from->size, err);
    if (status == BZ_OK) {
        status = bz_encode_image(encoder, p.rgb, p.width, p.height, &job, err);
    }
    if (status == BZ_OK) {
        status = encode(job, o->progress ? "encoding the image" : NULL, o->features, media, err);
    }
    image_free(&p);
    return status;
}

static bz_status encode_audio(bz_encoder *encoder, const source *from, const media_file_options *o,
                              bz_media **media, bz_error *err)
{
    bz_sound s = {0};
    bz_job *job = NULL;
    bz_status status = decode_sound(&s, from->data, from->size, err);
    if (status == BZ_OK) {
        status = bz_encode_audio(encoder, s.pcm, s.frames, s.rate, &job, err);
    }
    if (status == BZ_OK) {
        status = encode(job, o->progress ? "encoding the audio" : NULL, o->features, media, err);
    }
    if (status == BZ_OK && o->note) {
        note_audio(&s, *media, from->name, o);
    }
    bz_free(s.pcm);
    return status;
}

static bz_status encode_frame(bz_encoder *encoder, video_reader *v, uint64_t index,
                              media_file_features *features, bz_media **frame, bz_error *err)
{
    rgb_image p = {0};
    bz_job *job = NULL;
    bz_status status = video_frame(v, index, &p, err);
    if (status == BZ_OK) {
        status = bz_encode_frame(encoder, p.rgb, p.width, p.height, &job, err);
    }
    if (status == BZ_OK) {
        status = encode(job, NULL, features, frame, err);
    }
    image_free(&p);
    return status;
}

/* Frames of a video file, one after the other. */
static bz_status encode_video(bz_encoder *encoder, const source *from, const media_file_options *o,
                              bz_media **media, bz_error *err)
{
    uint64_t index[BZ_VIDEO_MAX_FRAMES];
    bz_media *frames[BZ_VIDEO_MAX_FRAMES];
    double seconds[BZ_VIDEO_MAX_FRAMES];
    video_reader *v = NULL;
    video_info info;
    uint32_t n = 0;
    bz_status status = video_open(&v, from->data, from->size, &info, err);
    const uint32_t wanted =
        status == BZ_OK ? bz_video_choose(index, o->video_frames, info.frames) : 0;
    if (status == BZ_OK && info.rate <= 0 && o->note) {
        o->note(o->user, "the video does not say how many frames it has per second; assuming 24");
    }
    if (o->progress) {
        term_busy("encoding the video");
    }
    while (n < wanted && status == BZ_OK) {
        seconds[n] = (double)index[n] / (info.rate > 0 ? info.rate : (double)BZ_VIDEO_RATE);
        status = interrupt_stop()
                     ? bz_fail(err, BZ_ABORTED, "Interrupted.")
                     : encode_frame(encoder, v, index[n], o->features, &frames[n], err);
        n += status == BZ_OK;
        if (o->progress) {
            term_progress(n, wanted, "frames");
        }
    }
    if (o->progress) {
        term_idle();
    }
    if (status == BZ_OK) {
        status = bz_video_new(media, frames, seconds, n, err);
    }
    for (uint32_t i = 0; i < n; i++) {
        bz_media_free(frames[i]);
    }
    video_close(v);
    return status;
}

/* ---- files --------------------------------------------------------------------------- */

bz_status media_file_encode(bz_encoder *encoder, bz_media_kind kind, const char *path,
                            const media_file_options *o, bz_media **media, bz_error *err)
{
    source from;
    bz_media *made = NULL;
    const bool noted = bz_encoder_notice(encoder) != NULL;
    bz_status status = source_open(&from, path, err);
    if (status != BZ_OK) {
        source_close(&from);
        return status; /* the error names the file */
    }
    if (from.size == 0) {
        status = bz_fail(err, BZ_BAD_FILE, "The file is empty.");
    } else if (kind == BZ_MEDIA_IMAGE) {
        status = encode_image(encoder, &from, o, &made, err);
    } else if (kind == BZ_MEDIA_AUDIO) {
        status = encode_audio(encoder, &from, o, &made, err);
    } else {
        status = encode_video(encoder, &from, o, &made, err);
    }
    if (bz_os_map_cut(&from.map)) {
        status = bz_fail(err, BZ_BAD_FILE, "Another program shortened the file while it was read.");
    }
    if (status == BZ_OK && o->note && bz_encoder_notice(encoder) && !noted) {
        o->note(o->user, bz_encoder_notice(encoder));
    }
    name_mmproj_option(err);
    if (status == BZ_OK) {
        *media = made;
    } else {
        bz_media_free(made);
    }
    status = status == BZ_OK || status == BZ_ABORTED ? status : about(&from, err);
    source_close(&from);
    return status;
}
