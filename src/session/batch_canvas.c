#include "session/batch_canvas.h"

#include <stdlib.h>

#include "bezel.h"
#include "session/job.h"

struct bz_canvas_batch {
    bz_session *session;
    bz_job *job;  /* NULL: none */
    bool writing; /* the job generates, else it prefills */
    bool stopped; /* while the job is in a step: freed after it */
    bool in_step;
    uint64_t waiting_since; /* for the device; 0: not */
    uint64_t reused_before; /* tokens, of earlier sequences */
    bz_generate_options options;
};

bz_status bz_canvas_batch_new(bz_canvas_batch **out, const bz_model *model,
                              const bz_session_options *o, bz_error *err)
{
    bz_canvas_batch *b = calloc(1, sizeof *b);
    if (!b) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a batch.");
    }
    bz_status status = bz_session_new(&b->session, model, o, err);
    if (status != BZ_OK) {
        free(b);
        return status;
    }
    *out = b;
    return BZ_OK;
}

static void end_job(bz_canvas_batch *b)
{
    bz_job_free(b->job);
    b->job = NULL;
}

void bz_canvas_batch_free(bz_canvas_batch *b)
{
    if (b) {
        end_job(b);
        bz_session_free(b->session);
        free(b);
    }
}

bz_status bz_canvas_batch_start(bz_canvas_batch *b, const int32_t *ids, size_t n,
                                const bz_generate_options *o, uint32_t *slot, bz_error *err)
{
    if (b->job) {
        return bz_fail(err, BZ_BAD_REQUEST, "A diffusion model answers one prompt at a time.");
    }
    b->options = (bz_generate_options){.size = sizeof(bz_generate_options),
                                       .max_tokens = o->max_tokens,
                                       .ignore_end = o->ignore_end,
                                       .sampling = {.seed = o->sampling.seed}};
    b->writing = b->stopped = false;
    b->reused_before = bz_canvas_batch_reused(b);
    *slot = 0;
    return bz_session_prefill(b->session, ids, n, NULL, &b->job, err);
}

bz_status bz_canvas_batch_set_adapters(bz_canvas_batch *b, const bz_adapter_use *uses, size_t n,
                                       bz_error *err)
{
    return b->job ? bz_fail(err, BZ_BAD_REQUEST,
                            "The adapters of a batch can be changed when none of its sequences is "
                            "running.")
                  : bz_session_set_adapters(b->session, uses, n, err);
}

void bz_canvas_batch_stop(bz_canvas_batch *b)
{
    if (b->in_step) {
        b->stopped = true;
    } else {
        end_job(b);
    }
}

static void report(bz_canvas_batch *b, bz_batch_callback on_event, void *user,
                   const bz_batch_event *e)
{
    b->in_step = true;
    on_event(user, e);
    b->in_step = false;
    if (b->stopped || e->finish != BZ_FINISH_NONE || e->error.code) {
        end_job(b);
    }
}

/* The prompt is prefilled: start the answer. */
static bz_status begin_writing(bz_canvas_batch *b, bz_error *err)
{
    end_job(b);
    b->writing = true;
    return bz_session_generate(b->session, &b->options, &b->job, err);
}

bz_status bz_canvas_batch_step(bz_canvas_batch *b, bz_batch_callback on_event, void *user,
                               bz_error *err)
{
    bz_need need = {0};
    if (!b->job) {
        return BZ_OK;
    }
    const bz_progress progress = bz_job_step(b->job, &need);
    b->waiting_since = progress == BZ_JOB_NEED_GPU ? b->waiting_since : 0;
    switch (progress) {
    case BZ_JOB_NEED_GPU: bz_gpu_pause(&b->waiting_since); return BZ_OK;
    case BZ_JOB_AGAIN: return BZ_OK;
    case BZ_JOB_NEED_BYTES: return bz_fail(err, BZ_BAD_FILE, "The model's file is not in memory.");
    case BZ_JOB_EVENT:
        if (need.event.kind == BZ_EVENT_TOKEN) {
            report(b, on_event, user,
                   &(bz_batch_event){.token = need.event.token, .finish = bz_job_finish(b->job)});
        }
        return BZ_OK;
    case BZ_JOB_DONE:
        if (!b->writing) {
            return begin_writing(b, err);
        }
        report(b, on_event, user,
               &(bz_batch_event){.token = -1,
                                 .finish = bz_job_finish(b->job)}); /* full before its first */
        return BZ_OK;
    case BZ_JOB_ERROR:
        report(b, on_event, user, &(bz_batch_event){.token = -1, .error = need.error});
        return BZ_OK;
    }
    return BZ_OK;
}

uint64_t bz_canvas_batch_reused(const bz_canvas_batch *b)
{
    return bz_session_get_stats(b->session).reused;
}

uint32_t bz_canvas_batch_last_reused(const bz_canvas_batch *b)
{
    return (uint32_t)(bz_canvas_batch_reused(b) - b->reused_before);
}

bool bz_canvas_batch_is_free(const bz_canvas_batch *b)
{
    return !b->job;
}

uint64_t bz_canvas_batch_cache_bytes(const bz_canvas_batch *b)
{
    return bz_session_get_stats(b->session).cache_bytes;
}
