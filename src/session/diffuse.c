/* The jobs of a diffusion model's session: write canvas after canvas, and logits of one for
 * checking. */
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "bezel_diffusion.h"
#include "session/job.h"
#include "model/diffusion.h"
#include "session/recover.h"
#include "sample/denoise.h"
#include "session/session.h"
#include "session/emit.h"

_Static_assert((int)BZ_LONGEST_CANVAS <= (int)BZ_MAX_CANVAS, "a job has room for every canvas");

uint32_t bz_model_canvas(const bz_model *m)
{
    return m->text.config.canvas;
}

const bz_canvas *bz_job_canvas(const bz_job *job)
{
    return job->canvas;
}

/* Rows of logits of a pass: a block of them, from `first` on. */
static void want_block(bz_session *s, uint32_t first)
{
    s->rows =
        (bz_rows){.n_out = bz_diffusion_block(&s->model->text), .out = s->out, .temperature = 1};
    for (uint32_t i = 0; i < s->rows.n_out; i++) {
        s->out[i] = first + i;
    }
}

static bz_pass_state work_on_pass(bz_session *s, bz_error *err)
{
    return s->backend->step(s->backend, bz_os_now() + BZ_STEP_NS, err);
}

static bz_status check_session(const bz_session *s, bz_error *err)
{
    if (!s->model->text.config.canvas) {
        return bz_fail(err, BZ_BAD_REQUEST, "The model is no diffusion model: it has no canvas.");
    }
    if (s->busy) {
        return bz_fail(err, BZ_BAD_REQUEST, "The session is busy with another job.");
    }
    return s->n ? BZ_OK : bz_fail(err, BZ_BAD_REQUEST, "Prefill a prompt before generating.");
}

/* ---- writing ------------------------------------------------------------------------ */

typedef enum diffuse_stage {
    STAGE_BLANK,  /* a canvas is to be begun */
    STAGE_STEP,   /* a pass over it is to be begun */
    STAGE_PASS,   /* ... is under way */
    STAGE_SAY,    /* it is settled: token `said` is next */
    STAGE_ENCODE, /* what was said of it becomes part of the sequence: a pass is to be begun */
    STAGE_ENCODING
} diffuse_stage;

typedef struct diffuse_job {
    bz_job job;
    bz_session *s;
    bz_emit emit;
    uint64_t seed;
    bz_denoise_rule rule;
    bz_denoise_options given; /* draw and its user */

    diffuse_stage stage;
    bz_canvas canvas;
    bz_denoise_state state;
    uint32_t said, encoded; /* tokens of the canvas */
    char *text;             /* of the canvas as it is, for its event */

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
    j->said = j->encoded = 0;
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
    want_block(s, 0);
    s->rows.reset_kept = step == 0;
    s->rows.temperature = j->canvas.temperature = bz_denoise_temperature(&j->rule, j->canvas.left);
    s->rows.uniform = j->unit;
    j->stage = STAGE_PASS;
    return bz_session_canvas_pass(s, CANVAS_DENOISE, j->input, &need->error) == BZ_OK
               ? BZ_JOB_AGAIN
               : BZ_JOB_ERROR;
}

/* What the pass says of each row becomes the next input, or the end. */
static bz_status judge(diffuse_job *j, bz_error *err)
{
    bz_session *s = j->s;
    const float *judged = bz_session_pass_logits(s);
    for (uint32_t i = 0; i < j->canvas.n; i++, judged += BZ_STAT_COLUMNS) {
        if (!(judged[BZ_STAT_ENTROPY] >= 0)) {
            return bz_fail(
                err, BZ_NUMERIC,
                "The model computed no finite number for token %u; the file is probably damaged.",
                s->n + i);
        }
        j->best[i] = (int32_t)judged[BZ_STAT_BEST];
        j->drawn[i] = (int32_t)judged[BZ_STAT_DRAWN];
        j->entropy[i] = judged[BZ_STAT_ENTROPY];
    }
    bz_denoise_accept(j->entropy, j->canvas.n, j->rule.entropy_bound, j->accepted);
    for (uint32_t i = 0; i < j->canvas.n; i++) {
        j->next[i] = j->accepted[i] ? j->drawn[i] : j->noise[i];
    }
    j->canvas.certain = bz_denoise_settled(&j->state, &j->rule, j->best, j->entropy);
    j->canvas.settled = j->canvas.certain || j->canvas.left == 1;
    return BZ_OK;
}

/* The canvas as it reads now, up to an end token. */
static size_t spell(diffuse_job *j)
{
    bz_detok detok = {0};
    size_t len = 0;
    for (uint32_t i = 0; i < j->canvas.n; i++) {
        if (!j->emit.ignore_end && bz_token_ends(j->s->model, j->best[i])) {
            break;
        }
        len += bz_detok_push(&detok, j->s->model->tokenizer, j->best[i], j->emit.show_control,
                             j->text + len);
    }
    return len + bz_detok_flush(&detok, j->text + len);
}

static bz_progress end_step(diffuse_job *j, bz_need *need)
{
    bz_pass_state state = work_on_pass(j->s, &need->error);
    if (state != BZ_PASS_DONE) {
        return bz_session_progress(j->s, state, need);
    }
    if (judge(j, &need->error) != BZ_OK) {
        return BZ_JOB_ERROR;
    }
    j->stage = j->canvas.settled ? STAGE_SAY : STAGE_STEP;
    j->job.canvas = &j->canvas;
    need->event = (bz_event){.kind = BZ_EVENT_CANVAS,
                             .done = j->rule.steps - j->canvas.left + 1,
                             .total = j->rule.steps,
                             .text = j->text,
                             .text_len = spell(j),
                             .position = j->canvas.position,
                             .rows = j->canvas.n};
    return BZ_JOB_EVENT;
}

/* The step after an event: its arrays are seen no more. */
static void turn_over(diffuse_job *j)
{
    if (j->stage == STAGE_STEP && j->state.any) {
        memcpy(j->input, j->next, sizeof j->input);
        j->canvas.left--;
    }
}

static bz_progress say(diffuse_job *j, bz_need *need)
{
    bz_session *s = j->s;
    const int32_t token = j->best[j->said++];
    const bool last = j->said == j->canvas.n,
               full = last && s->context - s->n - j->canvas.n < j->canvas.n;
    size_t len;
    j->job.finish = bz_emit_push(&j->emit, token, full, &len);
    s->stats.generated++;
    const bool more = j->job.finish == BZ_FINISH_NONE;
    j->stage = more && !last ? STAGE_SAY : STAGE_ENCODE;
    need->event = (bz_event){.kind = BZ_EVENT_TOKEN,
                             .done = j->emit.made,
                             .token = token,
                             .text = j->emit.text,
                             .text_len = len};
    return BZ_JOB_EVENT;
}

/* What was said becomes part of the sequence, unless nothing comes behind it. */
static bz_progress encode(diffuse_job *j, bz_need *need)
{
    bz_session *s = j->s;
    const bz_finish finish = j->job.finish;
    if (finish == BZ_FINISH_END || finish == BZ_FINISH_STOP) {
        return BZ_JOB_DONE;
    }
    if (j->encoded == j->said) {
        j->canvas.number++;
        j->stage = STAGE_BLANK;
        return finish == BZ_FINISH_NONE ? BZ_JOB_AGAIN : BZ_JOB_DONE;
    }
    const uint32_t left = j->said - j->encoded, count = left < s->chunk ? left : s->chunk;
    j->stage = STAGE_ENCODING;
    return bz_session_pass(s, j->best + j->encoded, count, PASS_NONE, &need->error) == BZ_OK
               ? BZ_JOB_AGAIN
               : BZ_JOB_ERROR;
}

static bz_progress work_diffuse(bz_job *job, bz_need *need)
{
    diffuse_job *j = (diffuse_job *)(void *)job;
    switch (j->stage) {
    case STAGE_BLANK: return begin_canvas(j, need);
    case STAGE_STEP: turn_over(j); return begin_step(j, need);
    case STAGE_PASS: return end_step(j, need);
    case STAGE_SAY: return say(j, need);
    case STAGE_ENCODE: return encode(j, need);
    case STAGE_ENCODING: {
        bz_pass_state state = bz_session_pass_step(j->s, &need->error);
        if (state != BZ_PASS_DONE) {
            return bz_session_progress(j->s, state, need);
        }
        j->encoded += j->s->rows.n;
        j->stage = STAGE_ENCODE;
        return BZ_JOB_AGAIN;
    }
    }
    return BZ_JOB_ERROR;
}

/* What a step is conditioned on is gone: the canvas begins anew, with the same chance. */
static void restart_diffuse(bz_job *job)
{
    diffuse_job *j = (diffuse_job *)(void *)job;
    if (j->stage == STAGE_STEP || j->stage == STAGE_PASS) {
        j->stage = STAGE_BLANK;
    } else if (j->stage == STAGE_ENCODING) {
        j->stage = STAGE_ENCODE;
    }
}

static bz_progress step_diffuse(bz_job *job, bz_need *need)
{
    diffuse_job *j = (diffuse_job *)(void *)job;
    if (j->given.draw) { /* numbers of the caller's come once: there is no beginning anew */
        return work_diffuse(job, need);
    }
    return bz_session_work(j->s, job, work_diffuse, restart_diffuse, need);
}

static float over(float given, float standard)
{
    return given == 0 ? standard : given < 0 ? 0 : given;
}

static bz_status fill_rule(bz_denoise_rule *r, const bz_denoising *d, const bz_denoise_options *o,
                           bz_error *err)
{
    *r = (bz_denoise_rule){.steps = o->steps ? o->steps : d->steps,
                           .t_min = o->t_min == 0 ? d->t_min : o->t_min,
                           .t_max = o->t_max == 0 ? d->t_max : o->t_max,
                           .entropy_bound = over(o->entropy_bound, d->entropy_bound),
                           .confidence = over(o->confidence, d->confidence),
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
        status = check_session(s, err);
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
    j->job = (bz_job){.step = step_diffuse, .free = free_diffuse, .lock = bz_model_lock(s->model)};
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

/* ---- logits of a canvas ---------------------------------------------------------------- */

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
    want_block(s, j->conditioning ? 0 : j->row);
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
    bz_pass_state state = work_on_pass(s, &need->error);
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
    bz_status status = check_session(s, err);
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
    *j = (canvas_job){
        .job = {.step = step_canvas, .free = free_canvas, .lock = bz_model_lock(s->model)},
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
