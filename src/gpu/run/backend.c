/* The GPU back end: runs passes. A pass writes its inputs (inputs.c), replays the list of its
 * schedule, mostly in one submit, and reads the output rows back. */
#include "gpu/run/backend.h"

#include <stdlib.h>

#include "gpu/run/internal.h"

enum { CANVAS_SUBMIT = 128 }; /* dispatches per submit: about three layers with experts */

void gpu_drop_pass(gpu_backend *b)
{
    gpu_fence *const fences[2] = {&b->fence, &b->previous};
    for (int i = 0; i < 2; i++) {
        if (*fences[i]) { /* the previous pass was cancelled while parts of it were in flight */
            gpu_read_drop(b->g, *fences[i]);
            *fences[i] = 0;
        }
    }
    b->read = 0;
}

/* Gives up rows and layers that are being fetched for the pass. */
static void stop(bz_backend *backend)
{
    gpu_backend *b = (gpu_backend *)(void *)backend;
    if (b->model->table) {
        gpu_table_give_up(b->model->table, b);
    }
    if (b->model->stream) {
        gpu_stream_leave(b->model->stream, b);
    }
}

static void begin(bz_backend *backend, bz_schedule *schedule, const bz_rows *rows)
{
    gpu_backend *b = (gpu_backend *)(void *)backend;
    gpu_drop_pass(b);
    stop(backend);
    b->schedule = schedule;
    b->pass = rows;
    b->stage = PASS_SUBMIT;
}

/* ---- the pass ------------------------------------------------------------------------ */

static bz_pass_state fetch_rows(gpu_backend *b, const bz_rows *rows, bz_error *err)
{
    uint32_t slots[GPU_MAX_ROWS];
    bz_pass_state state =
        gpu_table_fetch(b->model->table, b, rows->id, rows->n, slots, &b->table_use, err);
    if (state == BZ_PASS_DONE) {
        gpu_write(b->g, b->slots, 0, slots, rows->n * sizeof *slots);
    }
    return state;
}

/* Of the buffers that a list binds. */
static uint64_t generations(const gpu_backend *b, const kv_pool *pool)
{
    return (uint64_t)(pool ? pool->generation : 0) << 32 | b->arena_generation;
}

bz_pass_state gpu_ready(gpu_backend *b, bz_schedule *s, const bz_rows *rows, bz_error *err)
{
    if (gpu_state_of(b->g, err) != GPU_READY) {
        return BZ_PASS_ERROR;
    }
    switch (gpu_pipelines_state(b->pipelines, err)) {
    case GPU_PIPELINE_COMPILING: return BZ_PASS_WAIT;
    case GPU_PIPELINE_FAILED: return BZ_PASS_ERROR;
    case GPU_PIPELINE_READY: break;
    }
    const kv_pool *pool = gpu_pool_of(rows);
    if (!s->list || s->recorded_for != generations(b, pool)) {
        if (gpu_record(b, s, pool, err) != BZ_OK) {
            return BZ_PASS_ERROR;
        }
        s->recorded_for = generations(b, pool); /* recording may have replaced the arena */
    }
    if (!gpu_reserve_host(b, s, err)) {
        return BZ_PASS_ERROR;
    }
    return b->model->table ? fetch_rows(b, rows, err) : BZ_PASS_DONE;
}

/* All dispatches of the pass are submitted. */
static bz_pass_state read_or_wait(gpu_backend *b)
{
    if (b->model->stream) {
        gpu_stream_leave(b->model->stream, b);
    }
    b->stage = b->pass->n_out ? PASS_READING : PASS_WAITING;
    return BZ_PASS_AGAIN;
}

static bz_pass_state submit(gpu_backend *b, bz_error *err)
{
    if (b->tracer.trace && b->schedule != b->tracer.schedule) {
        bz_schedule *unfused = gpu_trace_begin(b, b->schedule, err);
        if (!unfused) {
            return BZ_PASS_ERROR;
        }
        b->schedule = unfused;
    }
    bz_schedule *s = b->schedule;
    bz_pass_state state = gpu_ready(b, s, b->pass, err);
    if (state != BZ_PASS_DONE) {
        return state;
    }
    if (b->model->stream && !gpu_stream_take(b->model->stream, b)) {
        return BZ_PASS_WAIT; /* another session's pass has the slots */
    }
    gpu_write_pass(b, s, b->pass, BZ_FEED_IDS, 0);
    b->replayed = 0;
    if (b->tracer.trace) {
        b->stage = PASS_TRACING;
        return BZ_PASS_AGAIN;
    }
    if (s->plan->tower) {
        b->stage = PASS_TOWER;
        return BZ_PASS_AGAIN;
    }
    if (b->model->stream) {
        b->segment = 0;
        b->stage = PASS_STREAMING;
        return BZ_PASS_AGAIN;
    }
    /* A pass over a canvas is long: on a slow GPU a single submit of it could exceed the time after
     * which some systems reset the device. */
    const uint32_t per_submit = b->pass->uniform ? CANVAS_SUBMIT : s->n;
    for (uint32_t first = 0; first < s->n; first += per_submit) {
        gpu_replay(b->g, s->list, first, s->n - first < per_submit ? s->n - first : per_submit);
    }
    return read_or_wait(b);
}

/* Submits each segment of the list when its layer is in GPU memory. It computes while the bytes of
 * the next layer are uploaded. */
static bz_pass_state submit_segments(gpu_backend *b, uint64_t deadline, bz_error *err)
{
    const bz_schedule *s = b->schedule;
    while (b->segment < s->n_segments) {
        const gpu_segment *t = &s->segments[b->segment];
        bz_pass_state state =
            t->layer ? gpu_stream_fetch(b->model->stream, t->layer, deadline, err) : BZ_PASS_DONE;
        if (state != BZ_PASS_DONE) {
            return state;
        }
        if (t->count) {
            gpu_replay(b->g, s->list, t->first, t->count);
        }
        b->segment++;
    }
    return read_or_wait(b);
}

/* One submit per layer: short enough for systems that limit the time of a submit, and a point where
 * the pass can be cancelled. The next layer is submitted before this one ends, so that the device
 * never waits for the host. */
static bz_pass_state next_layer(gpu_backend *b, bz_error *err)
{
    const bz_schedule *s = b->schedule;
    if (b->previous) {
        if (!gpu_signal_done(b->g, b->previous)) {
            return BZ_PASS_WAIT;
        }
        b->previous = 0;
    }
    b->previous = b->fence;
    b->fence = 0;
    if (b->replayed == s->n) {
        if (b->previous) {
            gpu_read_drop(b->g, b->previous); /* reading waits for it */
            b->previous = 0;
        }
        b->stage = PASS_READING;
        return BZ_PASS_AGAIN;
    }
    const uint32_t first = b->replayed;
    const int32_t layer = s->plan->steps[s->dispatches[first].first_step].layer;
    while (b->replayed < s->n &&
           s->plan->steps[s->dispatches[b->replayed].first_step].layer == layer) {
        b->replayed++;
    }
    gpu_replay(b->g, s->list, first, b->replayed - first);
    b->fence = gpu_signal(b->g, err);
    return b->fence ? BZ_PASS_AGAIN : BZ_PASS_ERROR;
}

static void progress(const bz_backend *backend, uint64_t *done, uint64_t *total)
{
    const gpu_backend *b = (const gpu_backend *)(const void *)backend;
    *done = b->replayed;
    *total = b->schedule->n;
}

bz_pass_state gpu_read_arena(gpu_backend *b, uint64_t offset, uint64_t bytes, void *to,
                             bz_error *err)
{
    while (b->read < bytes) {
        const uint64_t left = bytes - b->read, n = left < GPU_MAX_READ ? left : GPU_MAX_READ;
        if (!b->fence) {
            b->fence = gpu_read(b->g, b->arena, offset + b->read, n, err);
            if (!b->fence) {
                return BZ_PASS_ERROR;
            }
        }
        if (!gpu_read_done(b->g, b->fence, (uint8_t *)to + b->read)) {
            return gpu_state_of(b->g, err) == GPU_READY ? BZ_PASS_WAIT : BZ_PASS_ERROR;
        }
        b->fence = 0;
        b->read += n;
    }
    b->read = 0;
    return BZ_PASS_DONE;
}

static bz_pass_state read_output(gpu_backend *b, bz_error *err)
{
    const bz_schedule *s = b->schedule;
    const bz_tensor_info *out = bz_plan_tensor(s->plan, s->plan->output);
    const uint32_t rows = out->whole_pass ? b->pass->n : b->pass->n_out;
    return gpu_read_arena(b, gpu_lowered_offset(&s->lowered, s->plan->output),
                          (uint64_t)rows * out->cols * sizeof(float), b->out, err);
}

/* A pass without output is done when the one before has finished: the device always has a pass to
 * go on with, and at most two of a prompt are queued. If no pass follows, it has to finish itself.
 */
static bz_pass_state wait_for_pass(gpu_backend *b, bz_error *err)
{
    if (!b->fence && !(b->fence = gpu_signal(b->g, err))) {
        return BZ_PASS_ERROR;
    }
    if (b->unfinished && !gpu_signal_done(b->g, b->unfinished)) {
        return BZ_PASS_WAIT;
    }
    b->unfinished = 0;
    if (b->pass->more_follows) {
        b->unfinished = b->fence;
    } else if (!gpu_signal_done(b->g, b->fence)) {
        return BZ_PASS_WAIT;
    }
    b->fence = 0;
    return BZ_PASS_DONE;
}

static bz_pass_state trace_pass(gpu_backend *b, uint64_t deadline, bz_error *err)
{
    const bz_pass_state state = gpu_trace_step(b, deadline, err);
    return state == BZ_PASS_DONE ? read_or_wait(b) : state;
}

static bz_pass_state step(bz_backend *backend, uint64_t deadline, bz_error *err)
{
    gpu_backend *b = (gpu_backend *)(void *)backend;
    if (gpu_state_of(b->g, err) != GPU_READY) {
        return BZ_PASS_ERROR;
    }
    switch (b->stage) {
    case PASS_SUBMIT: return submit(b, err);
    case PASS_STREAMING: return submit_segments(b, deadline, err);
    case PASS_TOWER: return next_layer(b, err);
    case PASS_TRACING: return trace_pass(b, deadline, err);
    case PASS_READING: return read_output(b, err);
    case PASS_WAITING: return wait_for_pass(b, err);
    }
    return BZ_PASS_ERROR;
}

static const float *output(bz_backend *backend, const bz_schedule *schedule)
{
    (void)schedule;
    return ((gpu_backend *)(void *)backend)->out;
}

static uint32_t reads(bz_backend *backend, bz_read out[BZ_MAX_READS])
{
    const gpu_backend *b = (const gpu_backend *)(const void *)backend;
    return b->stage == PASS_STREAMING ? gpu_stream_reads(b->model->stream, out)
                                      : gpu_table_reads(b->model->table, out);
}

static void table_use(const bz_backend *backend, uint64_t *hits, uint64_t *misses)
{
    const gpu_backend *b = (const gpu_backend *)(const void *)backend;
    *hits = b->table_use.hits;
    *misses = b->table_use.misses;
}

static void free_backend(bz_backend *backend)
{
    gpu_backend *b = (gpu_backend *)(void *)backend;
    const gpu_buffer buffers[] = {b->arena, b->side, b->rows, b->empty, b->slots};
    stop(backend);
    if (b->unfinished) {
        gpu_read_drop(b->g, b->unfinished);
    }
    for (int i = 0; i < 5; i++) {
        if (buffers[i]) {
            gpu_buffer_free(b->g, buffers[i]);
        }
    }
    gpu_drop_pass(b);
    gpu_choose_free(b);
    gpu_set_trace(backend, NULL, NULL);
    free(b->out);
    free(b->angles);
    gpu_free_added_weights(&b->added);
    bz_gpu_model_drop(b->model);
    free(b);
}

void bz_gpu_allow_f16(bz_backend *backend)
{
    gpu_backend *b = (gpu_backend *)(void *)backend;
    b->matrices = gpu_limits_of(b->g)->matrices;
}

bz_status bz_gpu_new(bz_backend **out, bz_gpu_model *model, bool exact, bz_cache_type cache,
                     bool fuse, bz_error *err)
{
    gpu_backend *b = calloc(1, sizeof *b);
    if (!b) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the GPU back end.");
    }
    b->base = (bz_backend){.name = "gpu",
                           .free = free_backend,
                           .prepare = gpu_prepare,
                           .release = gpu_release,
                           .begin = begin,
                           .step = step,
                           .output = output,
                           .progress = progress,
                           .reads = reads,
                           .stop = stop,
                           .table_use = table_use,
                           .set_trace = gpu_set_trace};
    gpu_kv_interface(&b->base);
    if (!model->stream) { /* a pass in segments cannot be sent ahead */
        gpu_choose_interface(&b->base);
    }
    bz_gpu_model_hold(model);
    b->model = model;
    b->g = model->g;
    b->pipelines = model->pipelines;
    b->weights = model->weights;
    b->weight_bytes = model->weight_bytes;
    b->cache = cache;
    b->fuse = fuse;
    b->packed = !exact && gpu_limits_of(b->g)->packed_dot;
    b->matrices = b->packed && gpu_limits_of(b->g)->matrices;
    bz_error why = {0};
    b->rows = gpu_buffer_new(b->g, ROWS_WORDS * sizeof(uint32_t), GPU_STORAGE, &why);
    b->empty = b->rows ? gpu_buffer_new(b->g, 256, GPU_STORAGE, &why) : 0;
    if (b->empty && model->table) {
        b->slots = gpu_buffer_new(b->g, GPU_MAX_ROWS * sizeof(uint32_t), GPU_STORAGE, &why);
    }
    if (!b->empty || (model->table && !b->slots)) {
        free_backend(&b->base);
        return bz_fail(err, why.code, "%s", why.text);
    }
    *out = &b->base;
    return BZ_OK;
}
