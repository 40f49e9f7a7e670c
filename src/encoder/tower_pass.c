/* Passes of a tower. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "encoder/encode.h"

enum { ROW_BUCKET = 64 /* plans are recorded for multiples of it */ };

static bz_status plan_for(bz_encode_job *j, uint32_t rows, uint32_t out_rows, bz_error *err)
{
    bz_encoder *e = j->e;
    bz_tower_state *t = &e->tower[j->kind];
    if (t->plan && t->plan->rows >= rows && t->plan->out_rows >= out_rows) {
        return BZ_OK;
    }
    if (t->schedule) {
        t->backend->release(t->backend, t->schedule);
    }
    bz_plan_free(t->plan);
    t->plan = NULL;
    t->schedule = NULL;
    const uint32_t bucket = (rows + ROW_BUCKET - 1) / ROW_BUCKET * ROW_BUCKET;
    bz_status status =
        j->kind == BZ_MEDIA_IMAGE
            ? bz_vision_record(&e->towers, bucket, (out_rows + 7) / 8 * 8, &t->plan, err)
            : bz_audio_record(&e->towers, bucket, &t->plan, err);
    return status == BZ_OK ? t->backend->prepare(t->backend, t->plan, &t->schedule, err) : status;
}

static bz_status begin_image(bz_encode_job *j, bz_error *err)
{
    const bz_vision *v = &j->e->towers.vision;
    const uint32_t n = j->feature_rows, cols = j->to.width / v->side;
    const bool layers = v->kind == BZ_TOWER_LAYERS;
    if (cols > v->positions || n / cols > v->positions) {
        return bz_fail(
            err, BZ_BAD_REQUEST,
            "The image is %u patches wide and %u high; the model has %u positions, so crop it.",
            cols, n / cols, v->positions);
    }
    bz_status status = plan_for(j, n, layers ? j->media->rows : 1, err);
    j->pos_x = j->pos_x ? j->pos_x : malloc(n * sizeof *j->pos_x);
    j->pos_y = j->pos_y ? j->pos_y : malloc(n * sizeof *j->pos_y);
    if (status != BZ_OK || !j->pos_x || !j->pos_y) {
        return status != BZ_OK ? status
                               : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to encode an image.");
    }
    for (uint32_t i = 0; i < n; i++) {
        j->pos_x[i] = (int32_t)(i % cols);
        j->pos_y[i] = (int32_t)(i / cols);
    }
    j->rows = (bz_rows){.n = n,
                        .n_out = layers ? j->media->rows : 0,
                        .pos = j->pos_x,
                        .pos_y = j->pos_y,
                        .patch_cols = cols,
                        .input = j->features};
    return BZ_OK;
}

/* A piece of audio as rows of the plan: four frames each, silence after the last. */
static bz_status begin_audio(bz_encode_job *j, bz_error *err)
{
    const bz_encoder *e = j->e;
    const bool layers = e->towers.audio.kind == BZ_TOWER_LAYERS;
    size_t first = 0;
    for (uint32_t p = 0; p < j->piece; p++) {
        first += bz_encode_piece_features(j, p);
    }
    const uint32_t n = bz_encode_piece_tokens(j, j->piece),
                   frames = bz_encode_piece_features(j, j->piece);
    const size_t cols = (size_t)j->feature_cols * (layers ? BZ_FRAMES_PER_TOKEN : 1);
    bz_status status = plan_for(j, n, 1, err);
    if (status != BZ_OK) {
        return status;
    }
    free(j->input);
    j->input = calloc(n * cols, sizeof *j->input);
    if (!j->input) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to encode audio.");
    }
    memcpy(j->input, j->features + first * j->feature_cols,
           (size_t)frames * j->feature_cols * sizeof *j->input);
    j->rows = (bz_rows){
        .n = n, .n_out = layers ? BZ_AUDIO_WINDOW : 0, .input = j->input, .frames = frames};
    return BZ_OK;
}

/* One event per block. */
static bool report_progress(bz_encode_job *j, bz_need *need)
{
    const bz_backend *b = j->e->tower[j->kind].backend;
    const uint32_t blocks =
        (j->kind == BZ_MEDIA_IMAGE ? j->e->towers.vision.layers : j->e->towers.audio.layers) + 1;
    const uint32_t pieces = j->kind == BZ_MEDIA_IMAGE ? 1 : bz_encode_pieces(j);
    uint64_t done, total;
    if (!b) {
        return false;
    }
    b->progress(b, &done, &total);
    const uint64_t now = (uint64_t)j->piece * blocks + done * blocks / (total ? total : 1);
    if (now == j->reported) {
        return false;
    }
    j->reported = now;
    need->event =
        (bz_event){.kind = BZ_EVENT_PROGRESS, .done = now, .total = (uint64_t)blocks * pieces};
    return true;
}

bz_progress bz_encode_pass(bz_encode_job *j, bz_need *need)
{
    bz_encoder *e = j->e;
    bz_tower_state *t = &e->tower[j->kind];
    if (!j->in_pass) {
        const bz_status status =
            j->kind == BZ_MEDIA_IMAGE ? begin_image(j, &need->error) : begin_audio(j, &need->error);
        if (status != BZ_OK) {
            return bz_encode_fall_back(j, need);
        }
        t->backend->begin(t->backend, t->schedule, &j->rows);
        j->in_pass = true;
        return BZ_JOB_AGAIN;
    }
    const bz_pass_state state =
        t->backend->step(t->backend, bz_os_now() + BZ_STEP_NS, &need->error);
    if (state != BZ_PASS_DONE) {
        return state == BZ_PASS_ERROR     ? bz_encode_fall_back(j, need)
               : report_progress(j, need) ? BZ_JOB_EVENT
               : state == BZ_PASS_WAIT    ? BZ_JOB_NEED_GPU
                                          : BZ_JOB_AGAIN;
    }
    j->in_pass = false;
    const uint32_t made = j->kind == BZ_MEDIA_IMAGE ? j->media->rows : j->rows.n;
    const size_t width = j->media->width;
    memcpy(j->media->values + j->done_rows * width, t->backend->output(t->backend, t->schedule),
           made * width * sizeof(float));
    j->done_rows += made;
    j->piece++;
    if (j->done_rows < j->media->rows) {
        return BZ_JOB_AGAIN;
    }
    for (size_t i = 0; i < j->done_rows * width; i++) {
        if (!isfinite(j->media->values[i])) {
            bz_fail(&need->error, BZ_NUMERIC,
                    "The tower computed a value that is not finite; the file is probably damaged.");
            return BZ_JOB_ERROR;
        }
    }
    j->media->content = j->content;
    bz_encoder_cache_add(e, j->media);
    e->stats.encoded++;
    j->stage = STAGE_FINISHED;
    return BZ_JOB_AGAIN;
}
