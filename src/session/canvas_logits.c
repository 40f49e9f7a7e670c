/* For checking: the logits of one canvas, block by block. */
#include <stdlib.h>
#include <string.h>

#include "bezel_diffusion.h"
#include "model/diffusion.h"
#include "sample/denoise.h"
#include "session/canvas.h"
#include "session/job.h"
#include "session/recover.h"

typedef struct canvas_job {
    bz_job job;
    bz_session *s;
    uint32_t row;      /* of the canvas: how far it is */
    bool conditioning; /* `previous` is being looked at, else the canvas */
    bool in_pass;
    float temperature;
    float *previous; /* [n][vocabulary]; NULL: none */
    float *soft;     /* [n][d] */
    float unit[BZ_MAX_CANVAS];
    int32_t ids[BZ_MAX_CANVAS];
} canvas_job;

static void free_canvas(bz_job *job)
{
    canvas_job *j = (canvas_job *)(void *)job;
    bz_session_end_job(j->s);
    free(j->previous);
    free(j->soft);
    free(j);
}

static bz_progress begin_block(canvas_job *j, bz_need *need)
{
    bz_session *s = j->s;
    const bz_config *c = &s->model->text.config;
    bz_canvas_want_block(s, j->conditioning ? 0 : j->row);
    s->rows.uniform = j->unit;
    s->rows.temperature = j->temperature;
    s->rows.kept_input = j->conditioning ? j->previous + (size_t)j->row * c->vocab : j->soft;
    s->rows.reset_kept = !s->rows.kept_input;
    j->in_pass = true;
    return bz_session_canvas_pass(s, j->conditioning ? CANVAS_CONDITION : CANVAS_LOGITS, j->ids,
                                  &need->error) == BZ_OK
               ? BZ_JOB_AGAIN
               : BZ_JOB_ERROR;
}

static bz_progress work_canvas(bz_job *job, bz_need *need)
{
    canvas_job *j = (canvas_job *)(void *)job;
    bz_session *s = j->s;
    const bz_config *c = &s->model->text.config;
    const uint32_t block = bz_diffusion_block(&s->model->text);
    if (j->row == c->canvas) {
        if (!j->conditioning) {
            return BZ_JOB_DONE;
        }
        j->conditioning = false;
        j->row = 0;
    }
    if (!j->in_pass) {
        return begin_block(j, need);
    }
    bz_pass_state state = bz_canvas_work(s, &need->error);
    if (state != BZ_PASS_DONE) {
        return bz_session_progress(s, state, need);
    }
    const float *rows = bz_session_pass_logits(s);
    const uint32_t first = j->row;
    j->row += block;
    j->in_pass = false;
    if (j->conditioning) {
        memcpy(j->soft + (size_t)first * c->width, rows, (size_t)block * c->width * sizeof *rows);
        return BZ_JOB_AGAIN;
    }
    need->event = (bz_event){
        .kind = BZ_EVENT_LOGITS, .logits = rows, .position = s->n + first, .rows = block};
    return BZ_JOB_EVENT;
}

static void restart_canvas(bz_job *job)
{
    ((canvas_job *)(void *)job)->in_pass = false;
}

static bz_progress step_canvas(bz_job *job, bz_need *need)
{
    return bz_session_work(((canvas_job *)(void *)job)->s, job, work_canvas, restart_canvas, need);
}

bz_status bz_session_canvas(bz_session *s, const int32_t *ids, const float *previous,
                            float temperature, bz_job **out, bz_error *err)
{
    const bz_config *c = &s->model->text.config;
    bz_status status = bz_canvas_check(s, err);
    if (status != BZ_OK) {
        return status;
    }
    if (s->context - s->n < c->canvas) {
        return bz_fail(err, BZ_CONTEXT_FULL,
                       "Behind %u tokens a context of %u has no room for a canvas of %u.", s->n,
                       s->context, c->canvas);
    }
    for (uint32_t i = 0; i < c->canvas; i++) {
        if (ids[i] < 0 || (uint32_t)ids[i] >= c->vocab) {
            return bz_fail(err, BZ_BAD_REQUEST,
                           "Token %d (number %u of the canvas) is not in the vocabulary of %u.",
                           ids[i], i, c->vocab);
        }
    }
    if (previous && !(temperature > 0)) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "Logits of a step before need that step's temperature, above 0.");
    }
    canvas_job *j = calloc(1, sizeof *j);
    const size_t n = (size_t)c->canvas * c->vocab;
    float *copy = previous ? malloc(n * sizeof *copy) : NULL;
    float *soft = previous ? malloc((size_t)c->canvas * c->width * sizeof *soft) : NULL;
    if (!j || (previous && (!copy || !soft))) {
        free(j);
        free(copy);
        free(soft);
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for logits of a canvas.");
    }
    *j = (canvas_job){.job = {.step = step_canvas,
                              .free = free_canvas,
                              .lock = bz_model_lock(s->model),
                              .uses = s->model},
                      .s = s,
                      .conditioning = previous != NULL,
                      .temperature = temperature,
                      .previous = copy,
                      .soft = soft};
    if (previous) {
        memcpy(copy, previous, n * sizeof *copy);
    }
    memcpy(j->ids, ids, c->canvas * sizeof *ids);
    bz_session_begin_job(s);
    *out = &j->job;
    return BZ_OK;
}
