/* The trace hook: a traced pass runs the unfused list of its plan step by step and reads back what
 * each step wrote. Slow; for finding the step at which a back end goes wrong. Called by backend.c
 * (the pass) and schedule.c (when a schedule is released). */
#include <stdlib.h>

#include "gpu/run/internal.h"

void gpu_trace_drop(gpu_backend *b)
{
    gpu_tracer *t = &b->tracer;
    bz_schedule *unfused = t->schedule;
    b->schedule = b->schedule == unfused ? t->traced : b->schedule;
    t->schedule = t->traced = NULL;
    gpu_release(&b->base, unfused);
}

void gpu_set_trace(bz_backend *backend, bz_trace trace, void *user)
{
    gpu_backend *b = (gpu_backend *)(void *)backend;
    b->tracer.trace = trace;
    b->tracer.user = user;
    if (!trace) {
        gpu_trace_drop(b);
        free(b->tracer.values);
        b->tracer.values = NULL;
        b->tracer.capacity = 0;
    }
}

bz_schedule *gpu_trace_begin(gpu_backend *b, bz_schedule *s, bz_error *err)
{
    gpu_tracer *t = &b->tracer;
    if (s != t->traced) {
        gpu_trace_drop(b);
        if (gpu_prepare_list(b, s->plan, false, &t->schedule, err) != BZ_OK) {
            return NULL;
        }
        t->traced = s;
    }
    t->step = 0;
    t->dispatch = 0;
    t->output = -1;
    return t->schedule;
}

/* Submits the dispatches of the current step, when its layer is there. */
static bz_pass_state submit_step(gpu_backend *b, uint64_t deadline, bz_error *err)
{
    gpu_tracer *t = &b->tracer;
    const bz_schedule *s = t->schedule;
    const bz_weight w = s->plan->steps[t->step].w[0];
    const uint32_t layer = b->model->stream && w.id ? b->weights.streamed[w.id - 1] : 0;
    const bz_pass_state state =
        layer ? gpu_stream_fetch(b->model->stream, layer, deadline, err) : BZ_PASS_DONE;
    if (state == BZ_PASS_DONE) {
        const uint32_t first = t->dispatch;
        while (t->dispatch < s->n && s->dispatches[t->dispatch].first_step == t->step) {
            t->dispatch++;
        }
        if (t->dispatch > first) {
            gpu_replay(b->g, s->list, first, t->dispatch - first);
        }
        b->replayed = t->dispatch;
        t->output = 0;
    }
    return state;
}

/* Kernels keep ids of experts as floats; the hook gets int32, as on the CPU. */
static void convert_ids(void *values, uint64_t n)
{
    float *from = values;
    int32_t *to = values;
    for (uint64_t i = 0; i < n; i++) {
        to[i] = (int32_t)from[i];
    }
}

/* Reads an output of the current step and calls the hook. */
static bz_pass_state report(gpu_backend *b, bz_tensor out, bz_error *err)
{
    gpu_tracer *t = &b->tracer;
    const bz_schedule *s = t->schedule;
    const bz_step *step = &s->plan->steps[t->step];
    const bz_tensor_info *info = bz_plan_tensor(s->plan, out);
    const uint32_t rows = info->whole_pass ? b->pass->n : b->pass->n_out;
    const uint64_t values = rows ? (uint64_t)(rows - 1) * info->stride + info->cols : 0;
    if (4 * values > t->capacity) {
        free(t->values);
        t->values = malloc((size_t)(4 * values));
        t->capacity = t->values ? 4 * values : 0;
        if (!t->values) {
            bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to trace a pass.");
            return BZ_PASS_ERROR;
        }
    }
    if (values) {
        const bz_pass_state state =
            gpu_read_arena(b, gpu_lowered_offset(&s->lowered, out), 4 * values, t->values, err);
        if (state != BZ_PASS_DONE) {
            return state;
        }
    }
    if (step->op == BZ_OP_ROUTE && t->output == 0) {
        convert_ids(t->values, values);
    }
    t->trace(t->user, step, t->output, t->values, rows, info->cols, info->stride);
    return BZ_PASS_DONE;
}

bz_pass_state gpu_trace_step(gpu_backend *b, uint64_t deadline, bz_error *err)
{
    gpu_tracer *t = &b->tracer;
    const bz_plan *plan = t->schedule->plan;
    for (; t->step < plan->n_steps; t->step++) {
        bz_pass_state state = t->output < 0 ? submit_step(b, deadline, err) : BZ_PASS_DONE;
        for (; state == BZ_PASS_DONE && t->output < 2; t->output++) {
            const bz_tensor out = plan->steps[t->step].out[t->output];
            state = out.id ? report(b, out, err) : BZ_PASS_DONE;
            if (state != BZ_PASS_DONE) {
                return state;
            }
        }
        if (state != BZ_PASS_DONE) {
            return state;
        }
        t->output = -1;
    }
    return BZ_PASS_DONE;
}
