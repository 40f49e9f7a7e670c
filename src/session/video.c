/* Videos: which frames are taken, and encoded frames as one medium. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "session/media.h"

/* Times are written as mm:ss with at most so many minutes. */
enum { MAX_SECONDS = 60 * 100000 };

uint32_t bz_video_choose(uint64_t *index, uint32_t most, uint64_t total)
{
    const uint32_t wanted = most == 0 ? BZ_VIDEO_FRAMES : most;
    const uint32_t n = total < wanted ? (uint32_t)total : wanted;
    for (uint64_t i = 0; i < n; i++) {
        /* i * total / n, in 64 bits for every total */
        index[i] = total / n * i + total % n * i / n;
    }
    return n;
}

uint32_t bz_video_count(uint64_t total, double rate, double frames_per_second)
{
    const double n = (double)total / (rate > 0 ? rate : (double)BZ_VIDEO_RATE) * frames_per_second;
    return n < 1 || isnan(n)                 ? 1
           : n < (double)BZ_VIDEO_MAX_FRAMES ? (uint32_t)n
                                             : BZ_VIDEO_MAX_FRAMES;
}

static bz_status check_frames(bz_media *const *frames, const double *seconds, uint32_t n,
                              bz_error *err)
{
    if (n == 0 || n > BZ_VIDEO_MAX_FRAMES) {
        return bz_fail(err, BZ_BAD_REQUEST, "The video has %u frames; 1 to %d are taken.", n,
                       BZ_VIDEO_MAX_FRAMES);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (frames[i]->kind != BZ_MEDIA_IMAGE) {
            return bz_fail(err, BZ_BAD_REQUEST, "Frame %u of the video is not an image.", i + 1);
        }
        if (frames[i]->rows != frames[0]->rows || frames[i]->width != frames[0]->width) {
            return bz_fail(err, BZ_BAD_REQUEST,
                           "Frame %u of the video has %u tokens, the first one %u; all frames need "
                           "the same size.",
                           i + 1, frames[i]->rows, frames[0]->rows);
        }
        if (!(seconds[i] >= 0 && seconds[i] < (double)MAX_SECONDS)) {
            return bz_fail(err, BZ_BAD_REQUEST,
                           "Frame %u of the video is at %g seconds; times are from 0 to %d.", i + 1,
                           seconds[i], MAX_SECONDS);
        }
    }
    return BZ_OK;
}

bz_status bz_video_new(bz_media **video, bz_media *const *frames, const double *seconds, uint32_t n,
                       bz_error *err)
{
    const bz_status status = check_frames(frames, seconds, n, err);
    if (status != BZ_OK) {
        return status;
    }
    bz_media *m = bz_media_new(BZ_MEDIA_VIDEO, 0, frames[0]->width);
    if (m) {
        m->frames = calloc(n, sizeof *m->frames);
    }
    if (!m || !m->frames) {
        bz_media_free(m);
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a video.");
    }
    m->pieces = n;
    m->rows = n * frames[0]->rows;
    for (uint32_t i = 0; i < n; i++) {
        m->frames[i] = (bz_frame){bz_media_hold(frames[i]), seconds[i]};
    }
    *video = m;
    return BZ_OK;
}

const bz_media *bz_video_frame(const bz_media *video, uint32_t i, double *seconds)
{
    if (!video->frames || i >= video->pieces) {
        return NULL;
    }
    if (seconds) {
        *seconds = video->frames[i].seconds;
    }
    return video->frames[i].media;
}

const char *bz_video_text(const bz_media *video, bz_arena *arena)
{
    static const char form[] = "%s%02u:%02u <|image><|video|><image|>";
    enum { FRAME = sizeof form + 8 }; /* minutes have up to 6 digits */
    char *text = bz_arena_array(arena, video->pieces, FRAME);
    char *end = text;
    for (uint32_t i = 0; text && i < video->pieces; i++) {
        const unsigned seconds = (unsigned)video->frames[i].seconds;
        end += snprintf(end, FRAME, form, i ? " " : "", seconds / 60, seconds % 60);
    }
    return text;
}
