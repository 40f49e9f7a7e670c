/* Preparing the input of a tower: images are resized and cut into patches, audio is resampled and
 * turned into features. */
#include <stdlib.h>
#include <string.h>

#include "encoder/encode.h"

enum {
    MEL_ROWS = 64,        /* features of one step */
    RESAMPLE_ROWS = 16384 /* samples of one step */
};

static bz_progress no_memory(bz_need *need, const char *what)
{
    bz_fail(&need->error, BZ_OUT_OF_MEMORY, "No memory to encode %s.", what);
    return BZ_JOB_ERROR;
}

bz_progress bz_encode_prepare_image(bz_encode_job *j, bz_need *need)
{
    const bz_vision *v = &j->e->towers.vision;
    if (!j->resize) {
        return bz_resize_new(&j->resize, j->rgb, j->from, j->to, &need->error) == BZ_OK
                   ? BZ_JOB_AGAIN
                   : BZ_JOB_ERROR;
    }
    if (!bz_resize_step(j->resize)) {
        return BZ_JOB_AGAIN;
    }
    const bool layers = v->kind == BZ_TOWER_LAYERS;
    const uint32_t tokens = j->to.height / BZ_TOKEN_SIDE * (j->to.width / BZ_TOKEN_SIDE);
    j->feature_rows = j->to.height / v->side * (j->to.width / v->side);
    j->feature_cols = 3 * v->side * v->side;
    j->features = malloc((size_t)j->feature_rows * j->feature_cols * sizeof *j->features);
    j->media = bz_media_new(BZ_MEDIA_IMAGE, tokens, j->e->model->text.config.width);
    if (!j->features || !j->media) {
        return no_memory(need, "an image");
    }
    /* towers take pixels from -1 to 1, projections from 0 to 1 */
    bz_image_patches(bz_resize_pixels(j->resize), j->to, v->side,
                     layers ? 2.0f / 255.0f : 1.0f / 255.0f, layers ? -1.0f : 0.0f, j->features);
    bz_resize_free(j->resize);
    j->resize = NULL;
    j->stage = STAGE_TOWER;
    return BZ_JOB_AGAIN;
}

/* Pieces follow each other; one too short for a single frame is left out. */
static uint32_t piece_samples(const bz_encode_job *j, uint32_t piece)
{
    const size_t first = (size_t)piece * BZ_CLIP_SAMPLES, left = j->samples - first;
    return (uint32_t)(left < BZ_CLIP_SAMPLES ? left : BZ_CLIP_SAMPLES);
}

uint32_t bz_encode_piece_features(const bz_encode_job *j, uint32_t piece)
{
    const uint32_t n = piece_samples(j, piece);
    return j->e->towers.audio.kind == BZ_TOWER_LAYERS ? bz_mel_frames(n)
                                                      : (n + BZ_RAW_FRAME - 1) / BZ_RAW_FRAME;
}

uint32_t bz_encode_pieces(const bz_encode_job *j)
{
    return (uint32_t)((j->samples + BZ_CLIP_SAMPLES - 1) / BZ_CLIP_SAMPLES);
}

uint32_t bz_encode_piece_tokens(const bz_encode_job *j, uint32_t piece)
{
    const uint32_t n = bz_encode_piece_features(j, piece);
    return j->e->towers.audio.kind == BZ_TOWER_LAYERS
               ? (n + BZ_FRAMES_PER_TOKEN - 1) / BZ_FRAMES_PER_TOKEN
               : n;
}

static bz_progress allocate_audio(bz_encode_job *j, bz_need *need)
{
    const bool layers = j->e->towers.audio.kind == BZ_TOWER_LAYERS;
    uint32_t tokens = 0, pieces = 0;
    for (uint32_t p = 0; p < bz_encode_pieces(j); p++) {
        j->feature_rows += bz_encode_piece_features(j, p);
        tokens += bz_encode_piece_tokens(j, p);
        pieces += bz_encode_piece_tokens(j, p) > 0;
    }
    if (tokens == 0) {
        bz_fail(&need->error, BZ_BAD_REQUEST,
                "The audio lasts %.1f ms; it must last at least 10.1 ms.",
                (double)j->samples / 16.0);
        return BZ_JOB_ERROR;
    }
    j->feature_cols = layers ? BZ_MEL_BINS : BZ_RAW_FRAME;
    j->features = calloc((size_t)j->feature_rows * j->feature_cols, sizeof *j->features);
    j->media = bz_media_new(BZ_MEDIA_AUDIO, tokens, j->e->model->text.config.width);
    j->e->mel = j->e->mel ? j->e->mel : bz_mel_new();
    if (!j->features || !j->media || !j->e->mel) {
        return no_memory(need, "audio");
    }
    j->media->pieces = pieces;
    return BZ_JOB_AGAIN;
}

static bz_progress resample(bz_encode_job *j, bz_need *need)
{
    if (!j->resampler) {
        if (bz_resampler_new(&j->resampler, j->rate, BZ_SAMPLE_RATE, &need->error) != BZ_OK) {
            return BZ_JOB_ERROR;
        }
        j->resampled = malloc((size_t)(bz_resampler_count(j->resampler, j->samples) + 1) *
                              sizeof *j->resampled);
        return j->resampled ? BZ_JOB_AGAIN : no_memory(need, "audio");
    }
    const uint64_t total = bz_resampler_count(j->resampler, j->samples),
                   left = total - j->resampled_to;
    const size_t n = left < RESAMPLE_ROWS ? (size_t)left : RESAMPLE_ROWS;
    bz_resampler_run(j->resampler, j->pcm, j->samples, j->resampled_to, n,
                     j->resampled + j->resampled_to);
    j->resampled_to += n;
    if (j->resampled_to == total) {
        j->pcm = j->resampled;
        j->samples = (size_t)total;
        j->rate = BZ_SAMPLE_RATE;
    }
    return BZ_JOB_AGAIN;
}

bz_progress bz_encode_prepare_audio(bz_encode_job *j, bz_need *need)
{
    if (j->rate != BZ_SAMPLE_RATE) {
        return resample(j, need);
    }
    if (!j->features) {
        return allocate_audio(j, need);
    }
    if (j->e->towers.audio.kind ==
        BZ_TOWER_DIRECT) { /* pieces are whole numbers of frames: 30 s are 750 */
        memcpy(j->features, j->pcm, j->samples * sizeof *j->pcm);
        j->stage = STAGE_TOWER;
        return BZ_JOB_AGAIN;
    }
    uint32_t piece = 0, first = j->featured; /* row in its piece */
    while (first >= bz_encode_piece_features(j, piece)) {
        first -= bz_encode_piece_features(j, piece++);
    }
    const uint32_t left = bz_encode_piece_features(j, piece) - first,
                   n = left < MEL_ROWS ? left : MEL_ROWS;
    bz_mel_run(j->e->mel, j->pcm + (size_t)piece * BZ_CLIP_SAMPLES, piece_samples(j, piece), first,
               n, j->features + (size_t)j->featured * BZ_MEL_BINS);
    j->featured += n;
    if (j->featured == j->feature_rows) {
        j->stage = STAGE_TOWER;
    }
    return BZ_JOB_AGAIN;
}
