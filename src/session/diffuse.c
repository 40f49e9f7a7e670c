/* The job that generates with a diffusion model: it denoises a canvas until it is settled, reports
 * its tokens, commits them to the sequence and goes on to the next canvas. */
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "bezel_diffusion.h"
#include "session/job.h"
#include "model/diffusion.h"
#include "session/recover.h"
#include "sample/denoise.h"
#include "session/canvas.h"
#include "session/emit.h"

_Static_assert((int)BZ_LONGEST_CANVAS <= (int)BZ_MAX_CANVAS, "a job has arrays for every canvas");

uint32_t bz_model_canvas(const bz_model *m)
{
    return m->text.config.canvas;
}

const bz_canvas *bz_job_canvas(const bz_job *job)
{
    return job->canvas;
}

typedef enum diffuse_stage {
    STAGE_NEW_CANVAS,
    STAGE_STEP,   /* start a pass over the canvas */
    STAGE_PASS,   /* it is in flight */
    STAGE_EMIT,   /* the canvas is settled: emit token number `emitted` */
    STAGE_COMMIT, /* start a pass that appends the emitted tokens to the sequence */
    STAGE_COMMITTING
} diffuse_stage;

typedef struct diffuse_job {
    bz_job job;
    bz_session *s;
    bz_emit emit;
    uint64_t seed;
    bz_denoise_rule rule;
    bz_denoise_options given; /* for draw and its user */

    diffuse_stage stage;
    bz_canvas canvas;
    bz_denoise_state state;
    uint32_t emitted, committed; /* tokens of the canvas */
    char *text;                  /* of the current canvas, for its event */

    int32_t input[BZ_MAX_CANVAS], next[BZ_MAX_CANVAS], best[BZ_MAX_CANVAS], drawn[BZ_MAX_CANVAS],
        noise[BZ_MAX_CANVAS];
    float entropy[BZ_MAX_CANVAS], unit[BZ_MAX_CANVAS];
    bool accepted[BZ_MAX_CANVAS];
} diffuse_job;

static void free_diffuse(bz_job *job)
{
    diffuse_job *j = (diffuse_job *)(void *)job;
    bz_session_end_job(j->s);
    bz_emit_free(&j->emit);
    free(j->text);
    free(j);
}

/* Random numbers for a step, or for a canvas before its first step (units NULL). */
static bz_status draw(diffuse_job *j, uint32_t step, float *units, int32_t *ids, bz_error *err)
{
    const uint32_t vocab = j->s->model->text.config.vocab, n = j->canvas.n;
    if (!j->given.draw) {
        for (uint32_t i = 0; i < n; i++) {
            ids[i] = bz_denoise_noise(j->seed, j->canvas.position + i, step, vocab);
            if (units) {
                units[i] = bz_denoise_unit(j->seed, j->canvas.position + i, step);
            }
        }
        return BZ_OK;
    }
    if (!j->given.draw(j->given.user, n, units, ids)) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "There are not enough random numbers for step %u of canvas %u.", step,
                       j->canvas.number);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (ids[i] < 0 || (uint32_t)ids[i] >= vocab ||
            (units && !(units[i] >= 0 && units[i] < 1))) {
            return bz_fail(err, BZ_BAD_REQUEST,
                           "The random numbers of step %u of canvas %u are out of range.", step,
                           j->canvas.number);
        }
    }
    return BZ_OK;
}

static bz_progress begin_canvas(diffuse_job *j, bz_need *need)
{
    bz_session *s = j->s;
    if (s->context - s->n < j->canvas.n) {
        j->job.finish = BZ_FINISH_CONTEXT;
        return BZ_JOB_DONE;
    }
    j->canvas.position = s->n;
    j->canvas.left = j->rule.steps;
    j->state = (bz_denoise_state){.n = j->canvas.n};
    j->emitted = j->committed = 0;
    j->stage = STAGE_STEP;
    return draw(j, 0, NULL, j->input, &need->error) == BZ_OK ? BZ_JOB_AGAIN : BZ_JOB_ERROR;
}

static bz_progress begin_step(diffuse_job *j, bz_need *need)
{
    bz_session *s = j->s;
    const uint32_t step = j->rule.steps - j->canvas.left;
    if (draw(j, step + 1, j->unit, j->noise, &need->error) != BZ_OK) {
        return BZ_JOB_ERROR;
    }
    bz_canvas_want_block(s, 0);
    s->rows.reset_kept = step == 0;
    s->rows.temperature = j->canvas.temperature = bz_denoise_temperature(&j->rule, j->canvas.left);
    s->rows.uniform = j->unit;
    j->stage = STAGE_PASS;
    return bz_session_canvas_pass(s, CANVAS_DENOISE, j->input, &need->error) == BZ_OK
               ? BZ_JOB_AGAIN
               : BZ_JOB_ERROR;
}

/* Reads the result of a pass: the next input, and whether the canvas is settled. */
static bz_status read_pass(diffuse_job *j, bz_error *err)
{
    bz_session *s = j->s;
    const float *result = bz_session_pass_logits(s);
    for (uint32_t i = 0; i < j->canvas.n; i++, result += BZ_STAT_COLUMNS) {
        if (!(result[BZ_STAT_ENTROPY] >= 0)) {
            return bz_fail(
                err, BZ_NUMERIC,
                "The model computed no finite number for token %u; the file is probably damaged.",
                s->n + i);
        }
        j->best[i] = (int32_t)result[BZ_STAT_BEST];
        j->drawn[i] = (int32_t)result[BZ_STAT_DRAWN];
        j->entropy[i] = result[BZ_STAT_ENTROPY];
    }
    bz_denoise_accept(j->entropy, j->canvas.n, j->rule.entropy_bound, j->accepted);
    for (uint32_t i = 0; i < j->canvas.n; i++) {
        j->next[i] = j->accepted[i] ? j->drawn[i] : j->noise[i];
    }
    j->canvas.certain = bz_denoise_settled(&j->state, &j->rule, j->best, j->entropy);
    j->canvas.settled = j->canvas.certain || j->canvas.left == 1;
    return BZ_OK;
}

/* The text of the current canvas, up to an end token. */
static size_t write_text(diffuse_job *j)
{
    bz_detok detok = {0};
    size_t len = 0;
    for (uint32_t i = 0; i < j->canvas.n; i++) {
        if (!j->emit.limits.ignore_end && bz_token_ends(j->s->model, j->best[i])) {
            break;
        }
        len += bz_detok_push(&detok, j->s->model->tokenizer, j->best[i], j->emit.show_control,
                             j->text + len);
    }
    return len + bz_detok_flush(&detok, j->text + len);
}

static bz_progress end_step(diffuse_job *j, bz_need *need)
{
    bz_pass_state state = bz_canvas_work(j->s, &need->error);
    if (state != BZ_PASS_DONE) {
        return bz_session_progress(j->s, state, need);
    }
    if (read_pass(j, &need->error) != BZ_OK) {
        return BZ_JOB_ERROR;
    }
    j->stage = j->canvas.settled ? STAGE_EMIT : STAGE_STEP;
    j->job.canvas = &j->canvas;
    need->event = (bz_event){.kind = BZ_EVENT_CANVAS,
                             .done = j->rule.steps - j->canvas.left + 1,
                             .total = j->rule.steps,
                             .text = j->text,
                             .text_len = write_text(j),
                             .position = j->canvas.position,
                             .rows = j->canvas.n};
    return BZ_JOB_EVENT;
}

/* After a step's event: its arrays are no longer read. */
static void take_next_input(diffuse_job *j)
{
    if (j->stage == STAGE_STEP && j->state.any) {
        memcpy(j->input, j->next, sizeof j->input);
        j->canvas.left--;
    }
}

static bz_progress emit_token(diffuse_job *j, bz_need *need)
{
    bz_session *s = j->s;
    const int32_t token = j->best[j->emitted++];
    const bool last = j->emitted == j->canvas.n,
               full = last && s->context - s->n - j->canvas.n < j->canvas.n;
    size_t len;
    j->job.finish = bz_emit_push(&j->emit, token, full, &len);
    s->stats.generated++;
    const bool more = j->job.finish == BZ_FINISH_NONE;
    j->stage = more && !last ? STAGE_EMIT : STAGE_COMMIT;
    need->event = (bz_event){.kind = BZ_EVENT_TOKEN,
                             .done = j->emit.limits.made,
                             .token = token,
                             .text = j->emit.text,
                             .text_len = len};
    return BZ_JOB_EVENT;
}

/* The emitted tokens become part of the sequence, unless the answer has ended. */
static bz_progress commit(diffuse_job *j, bz_need *need)
{
    bz_session *s = j->s;
    const bz_finish finish = j->job.finish;
    if (finish == BZ_FINISH_END || finish == BZ_FINISH_STOP) {
        return BZ_JOB_DONE;
    }
    if (j->committed == j->emitted) {
        j->canvas.number++;
        j->stage = STAGE_NEW_CANVAS;
        return finish == BZ_FINISH_NONE ? BZ_JOB_AGAIN : BZ_JOB_DONE;
    }
    const uint32_t left = j->emitted - j->committed, count = left < s->chunk ? left : s->chunk;
    j->stage = STAGE_COMMITTING;
    return bz_session_pass(s, j->best + j->committed, count, PASS_NONE, &need->error) == BZ_OK
               ? BZ_JOB_AGAIN
               : BZ_JOB_ERROR;
}

static bz_progress work_diffuse(bz_job *job, bz_need *need)
{
    diffuse_job *j = (diffuse_job *)(void *)job;
    switch (j->stage) {
    case STAGE_NEW_CANVAS: return begin_canvas(j, need);
    case STAGE_STEP: take_next_input(j); return begin_step(j, need);
    case STAGE_PASS: return end_step(j, need);
    case STAGE_EMIT: return emit_token(j, need);
    case STAGE_COMMIT: return commit(j, need);
    case STAGE_COMMITTING: {
        bz_pass_state state = bz_session_pass_step(j->s, &need->error);
        if (state != BZ_PASS_DONE) {
            return bz_session_progress(j->s, state, need);
        }
        j->committed += j->s->rows.n;
        j->stage = STAGE_COMMIT;
        return BZ_JOB_AGAIN;
    }
    }
    return BZ_JOB_ERROR;
}

/* The logits that a step is conditioned on are lost: the canvas starts again with the same random
 * numbers. */
static void restart_diffuse(bz_job *job)
{
    diffuse_job *j = (diffuse_job *)(void *)job;
    if (j->stage == STAGE_STEP || j->stage == STAGE_PASS) {
        j->stage = STAGE_NEW_CANVAS;
    } else if (j->stage == STAGE_COMMITTING) {
        j->stage = STAGE_COMMIT;
    }
}

static bz_progress step_diffuse(bz_job *job, bz_need *need)
{
    diffuse_job *j = (diffuse_job *)(void *)job;
    if (j->given.draw) { /* the caller's numbers come once: no restart */
        return work_diffuse(job, need);
    }
    return bz_session_work(j->s, job, work_diffuse, restart_diffuse, need);
}

static float or_default(float given, float standard)
{
    return given == 0 ? standard : given < 0 ? 0 : given;
}

static bz_status fill_rule(bz_denoise_rule *r, const bz_denoising *d, const bz_denoise_options *o,
                           bz_error *err)
{
    *r = (bz_denoise_rule){.steps = o->steps ? o->steps : d->steps,
                           .t_min = o->t_min == 0 ? d->t_min : o->t_min,
                           .t_max = o->t_max == 0 ? d->t_max : o->t_max,
                           .entropy_bound = or_default(o->entropy_bound, d->entropy_bound),
                           .confidence = or_default(o->confidence, d->confidence),
                           .stability = o->stability == 0  ? d->stability
                                        : o->stability < 0 ? 0
                                                           : (uint32_t)o->stability};
    if (!(r->t_min > 0 && r->t_max > 0) || r->steps > 4096) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "A canvas needs temperatures above 0 and at most 4096 steps.");
    }
    return BZ_OK;
}

bz_status bz_session_diffuse(bz_session *s, const bz_generate_options *options,
                             const bz_denoise_options *denoise, bz_job **out, bz_error *err)
{
    bz_generate_options o;
    bz_denoise_options d;
    bz_status status = BZ_READ_GENERATE(&o, options, err);
    if (status == BZ_OK) {
        status = BZ_READ_DENOISE(&d, denoise, err);
    }
    if (status == BZ_OK) {
        status = bz_canvas_check(s, err);
    }
    if (status != BZ_OK) {
        return status;
    }
    if (o.log_probs || o.top_log_probs) {
        return bz_fail(
            err, BZ_BAD_REQUEST,
            "A diffusion model's tokens have no probabilities of their own; ask for none.");
    }
    diffuse_job *j = calloc(1, sizeof *j);
    if (!j) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a generation job.");
    }
    j->job = (bz_job){.step = step_diffuse,
                      .free = free_diffuse,
                      .lock = bz_model_lock(s->model),
                      .uses = s->model};
    j->s = s;
    j->seed = o.sampling.seed;
    j->given = d;
    j->canvas = (bz_canvas){.n = s->model->text.config.canvas,
                            .input = j->input,
                            .best = j->best,
                            .drawn = j->drawn,
                            .entropy = j->entropy,
                            .accepted = j->accepted,
                            .next = j->next};
    j->text = malloc((size_t)(j->canvas.n + 2) * BZ_DETOK_MAX);
    status = j->text ? fill_rule(&j->rule, &s->model->text.config.denoising, &d, err)
                     : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a generation job.");
    if (status == BZ_OK) {
        status = bz_emit_begin(&j->emit, s->model, &o, err);
    }
    if (status != BZ_OK) {
        bz_emit_free(&j->emit);
        free(j->text);
        free(j);
        return status;
    }
    bz_session_begin_job(s);
    *out = &j->job;
    return BZ_OK;
}
