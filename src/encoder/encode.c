/* The job that encodes an image or audio. */
#include <stdlib.h>

#include "encoder/encode.h"

enum { MAX_SECONDS = 3600 };

static bz_content content_of(const bz_encode_job *j)
{
    if (j->kind == BZ_MEDIA_IMAGE) {
        const uint64_t seed =
            (uint64_t)j->to.height << 40 ^ (uint64_t)j->to.width << 20 ^ j->from.width;
        return bz_content_of(j->rgb, (size_t)j->from.height * j->from.width * 3, seed);
    }
    return bz_content_of(j->pcm, j->samples * sizeof *j->pcm, 1ull << 63 ^ j->rate);
}

/* Whether the weights are loaded; on a GPU, onto the model's current device. */
static bool is_ready(const bz_encoder *e, bz_media_kind kind)
{
    const bz_tower_state *t = &e->tower[kind];
    return t->ready && (!t->on_gpu ||
                        (t->gpu->shares == e->model->gpu->loaded && bz_model_is_loaded(e->model)));
}

static bz_progress step_look(bz_encode_job *j)
{
    bz_encoder *e = j->e;
    j->content = content_of(j);
    j->media = bz_encoder_cache_find(e, j->content);
    if (j->media) {
        e->stats.cached++;
        j->stage = STAGE_FINISHED;
        return BZ_JOB_AGAIN;
    }
    j->stage = is_ready(e, j->kind) ? STAGE_PREPARE : STAGE_READ;
    return BZ_JOB_AGAIN;
}

static bz_progress step_stage(bz_encode_job *j, bz_need *need)
{
    switch (j->stage) {
    case STAGE_LOOK: return step_look(j);
    case STAGE_READ: return bz_encode_read(j, need);
    case STAGE_CHECK: return bz_encode_check(j, need);
    case STAGE_LOAD: return bz_encode_load(j, need);
    case STAGE_PREPARE:
        return j->kind == BZ_MEDIA_IMAGE ? bz_encode_prepare_image(j, need)
                                         : bz_encode_prepare_audio(j, need);
    case STAGE_TOWER: return bz_encode_pass(j, need);
    case STAGE_FINISHED: break;
    }
    return BZ_JOB_DONE;
}

/* A device can be lost at any time: the current piece is encoded again on another, unless that is
 * lost, too. */
static bz_progress step(bz_job *job, bz_need *need)
{
    bz_encode_job *j = (bz_encode_job *)(void *)job;
    const bz_progress p = step_stage(j, need);
    if (p != BZ_JOB_ERROR || need->error.code != BZ_DEVICE_LOST || !j->e->tower[j->kind].on_gpu) {
        return p;
    }
    bz_encoder_drop(j->e, j->kind);
    if (bz_model_is_loaded(j->e->model) || (j->lost && j->lost_at == j->done_rows)) {
        return BZ_JOB_ERROR;
    }
    j->in_pass = j->reloading = false;
    j->stage = STAGE_LOAD;
    return BZ_JOB_AGAIN;
}

static void free_job(bz_job *job)
{
    bz_encode_job *j = (bz_encode_job *)(void *)job;
    bz_tower_state *t = &j->e->tower[j->kind];
    bz_encode_forget_reads(j);
    bz_model_load_end(j->e->model, j);
    if (t->gpu && !t->gpu->ready) { /* it is unknown which reads were done */
        bz_encoder_drop(j->e, j->kind);
    }
    j->e->busy = false;
    bz_media_free(j->media);
    bz_resize_free(j->resize);
    bz_resampler_free(j->resampler);
    free(j->resampled);
    free(j->features);
    free(j->input);
    free(j->pos_x);
    free(j->pos_y);
    free(j);
}

static bz_status new_job(bz_encode_job **out, bz_encoder *e, bz_media_kind kind, bz_error *err)
{
    static const char *const what[2] = {"images", "audio"};
    if (e->busy) {
        return bz_fail(err, BZ_BAD_REQUEST, "The encoder is busy with another job.");
    }
    if (!bz_model_takes(e->model, kind)) {
        const bool two_files =
            e->model->set.flavor == BZ_FLAVOR_LLAMACPP && e->model->set.mmproj < 0;
        return bz_fail(
            err, BZ_UNSUPPORTED_MODEL,
            two_files ? "This model takes no %s as it is; open its mmproj file together with it."
                      : "This model takes no %s.",
            what[kind]);
    }
    bz_encode_job *j = calloc(1, sizeof *j);
    if (!j) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for an encoder.");
    }
    *j = (bz_encode_job){
        .job = {.step = step, .free = free_job, .lock = bz_model_lock(e->model), .uses = e->model},
        .e = e,
        .kind = kind};
    *out = j;
    return BZ_OK;
}

static bz_status encode_pixels(bz_encoder *e, const uint8_t *rgb, bz_size from, uint32_t budget,
                               bz_job **out, bz_error *err)
{
    bz_encode_job *j = NULL;
    bz_size to;
    bz_status status = bz_image_fit(from, budget, &to, err);
    if (status == BZ_OK) {
        status = new_job(&j, e, BZ_MEDIA_IMAGE, err);
    }
    if (status != BZ_OK) {
        return status;
    }
    j->rgb = rgb;
    j->from = from;
    j->to = to;
    e->busy = true;
    *out = &j->job;
    return BZ_OK;
}

bz_status bz_encode_image(bz_encoder *e, const uint8_t *rgb, uint32_t width, uint32_t height,
                          bz_job **out, bz_error *err)
{
    return encode_pixels(e, rgb, (bz_size){height, width}, e->budget, out, err);
}

bz_status bz_encode_frame(bz_encoder *e, const uint8_t *rgb, uint32_t width, uint32_t height,
                          bz_job **out, bz_error *err)
{
    if (e->model->text.config.canvas) {
        return bz_fail(err, BZ_UNSUPPORTED_MODEL, "Diffusion models take no video.");
    }
    return encode_pixels(e, rgb, (bz_size){height, width}, e->frame_budget, out, err);
}

bz_status bz_encode_audio(bz_encoder *e, const float *pcm, size_t samples, uint32_t rate,
                          bz_job **out, bz_error *err)
{
    bz_encode_job *j = NULL;
    if (rate < BZ_AUDIO_MIN_RATE || rate > BZ_AUDIO_MAX_RATE) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "The audio has %u samples a second; %d to %d are supported.", rate,
                       BZ_AUDIO_MIN_RATE, BZ_AUDIO_MAX_RATE);
    }
    if (samples == 0) {
        return bz_fail(err, BZ_BAD_REQUEST, "The audio has no samples.");
    }
    if (samples / rate >= MAX_SECONDS) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "The audio lasts %zu minutes; at most %d are supported, so cut it.",
                       samples / rate / 60, MAX_SECONDS / 60);
    }
    const bz_status status = new_job(&j, e, BZ_MEDIA_AUDIO, err);
    if (status != BZ_OK) {
        return status;
    }
    j->pcm = pcm;
    j->samples = samples;
    j->rate = rate;
    e->busy = true;
    *out = &j->job;
    return BZ_OK;
}

/* The job as an encoding that is done; else NULL. */
static const bz_encode_job *finished(const bz_job *job)
{
    const bz_encode_job *j = (const bz_encode_job *)(const void *)job;
    return job->step == step && j->stage == STAGE_FINISHED ? j : NULL;
}

bz_media *bz_job_media(bz_job *job)
{
    const bz_encode_job *j = finished(job);
    return j ? bz_media_hold(j->media) : NULL;
}

const float *bz_job_features(const bz_job *job, uint32_t *rows, uint32_t *cols)
{
    const bz_encode_job *j = finished(job);
    *rows = j ? j->feature_rows : 0;
    *cols = j ? j->feature_cols : 0;
    return j ? j->features : NULL;
}

bz_status bz_image_check(uint32_t width, uint32_t height, bz_error *err)
{
    bz_size to;
    return bz_image_fit((bz_size){height, width}, 0, &to, err);
}
