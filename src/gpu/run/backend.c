/* A pass on the GPU: write the parameter block and the angles, replay the list in one submit, read
 * the wanted logits back. */
#include "gpu/run/backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "gpu/run/internal.h"
#include "gpu/lower/tower.h"

enum { CANVAS_SUBMIT = 128 }; /* dispatches: about three layers of experts */

void gpu_drop_pass(gpu_backend *b)
{
    gpu_fence *const fences[2] = {&b->fence, &b->before};
    for (int i = 0; i < 2; i++) {
        if (*fences[i]) { /* the pass before was cancelled while something of it was under way */
            gpu_read_drop(b->g, *fences[i]);
            *fences[i] = 0;
        }
    }
    b->read = 0;
}

/* Rows that are being fetched are not waited for. */
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

/* ---- what changes per pass --------------------------------------------------------- */

/* Cosines and sines come from the host: a shader's are only good to about 2^-11. */
static void fill_angles(float *to, const rope_fill *fill, const bz_rows *rows, uint32_t stride)
{
    uint32_t pairs = fill->step->width / 2;
    for (uint32_t r = 0; r < rows->n; r++) {
        for (uint32_t axis = 0; axis < fill->step->axes; axis++) {
            float *row = to + (size_t)r * stride + (size_t)axis * fill->step->width;
            const int32_t *places = axis ? rows->pos_y : rows->pos;
            const uint32_t back =
                axis ? 1
                     : rows->patch_cols; /* of a picture: where most likely the same place was */
            const float pos = (float)places[r];
            if (back && r >= back && places[r - back] == places[r]) {
                memcpy(row, row - (size_t)back * stride, 2 * pairs * sizeof *row);
                continue;
            }
            for (uint32_t i = 0; i < pairs; i++) {
                row[i] = cosf(pos * fill->frequency[i]);
                row[pairs + i] = sinf(pos * fill->frequency[i]);
            }
        }
    }
}

/* Tables that lie side by side, as they do for one row, are one write. */
static void write_angles(gpu_backend *b, const bz_schedule *s, const bz_rows *rows)
{
    size_t used = 0;
    uint64_t at = 0;
    for (uint32_t t = 0; t < s->n_ropes; t++) {
        bz_tensor table = s->ropes[t].step->out[0];
        uint32_t stride = bz_plan_tensor(s->plan, table)->stride;
        uint64_t place = gpu_place(s, table);
        if (used && place != at + used * sizeof(float)) {
            gpu_write(b->g, b->arena, at, b->angles, used * sizeof(float));
            used = 0;
        }
        at = used ? at : place;
        fill_angles(b->angles + used, &s->ropes[t], rows, stride);
        used += (size_t)rows->n * stride;
    }
    if (used) {
        gpu_write(b->g, b->arena, at, b->angles, used * sizeof(float));
    }
}

/* Rows that are no tokens go straight to where embed would write them, which is the pass's first
 * step: nothing else lies there before it. Neighbours in memory are one write. */
static void write_soft(gpu_backend *b, const bz_schedule *s, const bz_rows *rows)
{
    uint32_t block[2 * GPU_MAX_ROWS];
    for (uint32_t i = 0; rows->image_last && i < rows->n; i++) {
        block[2 * i] = (uint32_t)rows->image_first[i];
        block[2 * i + 1] = (uint32_t)rows->image_last[i];
    }
    if (rows->image_last) {
        gpu_write(b->g, b->rows, ROWS_BLOCKS * sizeof *block, block, 2 * rows->n * sizeof *block);
    }
    for (size_t k = 0; k < s->plan->n_steps; k++) {
        const bz_step *step = &s->plan->steps[k];
        const bz_tensor_info *t = bz_plan_tensor(s->plan, step->out[0]);
        for (uint32_t i = 0; step->accepts_soft && i < rows->n;) {
            uint32_t n = rows->soft[i] ? 1 : 0;
            while (n && t->stride == t->cols && i + n < rows->n &&
                   rows->soft[i + n] == rows->soft[i] + (size_t)n * t->cols) {
                n++;
            }
            if (n) {
                gpu_write(b->g, b->arena, gpu_place(s, step->out[0]) + (uint64_t)i * t->stride * 4,
                          rows->soft[i], (uint64_t)n * t->cols * 4);
            }
            i += n ? n : 1;
        }
    }
}

/* What the steps of a canvas look at, and what the host has instead of the pass before. */
static void write_canvas(gpu_backend *b, const bz_schedule *s, const bz_rows *rows)
{
    uint32_t block[2 + GPU_MAX_ROWS] = {rows->reset_kept};
    memcpy(&block[1], &rows->temperature, sizeof rows->temperature);
    memcpy(&block[2], rows->uniform, rows->n * sizeof *rows->uniform);
    gpu_write(b->g, b->rows, ROWS_FRESH * sizeof *block, block, (2 + rows->n) * sizeof *block);
    for (uint32_t i = 1; rows->kept_input && i < s->plan->n_tensors; i++) {
        if (s->plan->tensors[i].kept) {
            gpu_write(b->g, b->arena, s->offset[i], rows->kept_input,
                      (uint64_t)rows->n * s->plan->tensors[i].cols * sizeof(float));
            break;
        }
    }
}

void gpu_write_pass(gpu_backend *b, const bz_schedule *s, const bz_rows *rows, bool own, float u)
{
    uint32_t block[ROWS_CHOSEN] = {rows->n, rows->n_out, 0, own};
    if (s->plan->tower) {
        gpu_write_tower(b, s, rows);
        write_angles(b, s, rows);
        return;
    }
    memcpy(&block[ROWS_DRAW], &u, sizeof u);
    for (uint32_t i = 0; i < rows->n; i++) {
        uint32_t *row = block + ROWS_LIST + 3 * i;
        const bool of_picture = rows->image_last && (rows->image_last[i] != rows->pos[i] ||
                                                     rows->image_first[i] != rows->pos[i]);
        row[0] = own ? 0 : (uint32_t)rows->id[i];
        row[0] |=
            (rows->soft && rows->soft[i] ? ROWS_IS_SOFT : 0) | (of_picture ? ROWS_OF_PICTURE : 0);
        row[1] = (uint32_t)rows->pos[i];
        row[2] = i < rows->n_out ? rows->out[i] : 0;
    }
    gpu_write(b->g, b->rows, 0, block, (ROWS_LIST + 3 * rows->n) * sizeof *block);
    if (rows->uniform) {
        write_canvas(b, s, rows);
    }
    write_angles(b, s, rows);
    if (rows->soft) {
        write_soft(b, s, rows);
    }
}

static bool reserve_host(gpu_backend *b, const bz_schedule *s, bz_error *err)
{
    size_t angles = 0;
    for (uint32_t t = 0; t < s->n_ropes; t++) {
        angles += (size_t)s->plan->rows * s->ropes[t].step->width * s->ropes[t].step->axes *
                  sizeof(float);
    }
    if (angles > b->angles_bytes) {
        free(b->angles);
        b->angles = malloc(angles);
        b->angles_bytes = b->angles ? angles : 0;
    }
    const bz_tensor_info *out = bz_plan_tensor(s->plan, s->plan->output);
    uint64_t bytes = s->plan->out_rows ? (uint64_t)bz_plan_rows_of(s->plan, s->plan->output) *
                                             out->cols * sizeof(float)
                                       : 0;
    if (bytes > b->out_bytes) {
        free(b->out);
        b->out = bz_alloc(bytes);
        b->out_bytes = b->out ? bytes : 0;
    }
    if (b->angles_bytes < angles || b->out_bytes < bytes) {
        bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a pass of %u rows.", s->plan->rows);
        return false;
    }
    return true;
}

/* ---- the pass ------------------------------------------------------------------------ */

static bz_pass_state fetch_rows(gpu_backend *b, const bz_rows *rows, bz_error *err)
{
    uint32_t slots[GPU_MAX_ROWS];
    bz_pass_state state =
        gpu_table_fetch(b->model->table, b, rows->id, rows->n, slots, &b->use, err);
    if (state == BZ_PASS_DONE) {
        gpu_write(b->g, b->slots, 0, slots, rows->n * sizeof *slots);
    }
    return state;
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
    const bz_kv *kv = rows->kv ? rows->kv[0] : NULL; /* towers have no caches */
    uint32_t generation = (kv ? kv->generation : 0) * 65536 + b->arena_generation;
    if (!s->list || s->kv_generation != generation) {
        if (gpu_record(b, s, kv, err) != BZ_OK) {
            return BZ_PASS_ERROR;
        }
        s->kv_generation =
            (kv ? kv->generation : 0) * 65536 + b->arena_generation; /* the arena may have grown */
    }
    if (!reserve_host(b, s, err)) {
        return BZ_PASS_ERROR;
    }
    return b->model->table ? fetch_rows(b, rows, err) : BZ_PASS_DONE;
}

static bz_pass_state submit(gpu_backend *b, bz_error *err)
{
    bz_schedule *s = b->schedule;
    bz_pass_state state = gpu_ready(b, s, b->pass, err);
    if (state != BZ_PASS_DONE) {
        return state;
    }
    if (b->model->stream && !gpu_stream_take(b->model->stream, b)) {
        return BZ_PASS_WAIT; /* another session's pass has the slots */
    }
    gpu_write_pass(b, s, b->pass, false, 0);
    b->replayed = 0;
    if (s->plan->tower) {
        b->stage = PASS_TOWER;
        return BZ_PASS_AGAIN;
    }
    if (b->model->stream) {
        b->stretch = 0;
        b->stage = PASS_STREAMING;
        return BZ_PASS_AGAIN;
    }
    /* A step over a canvas is long: on a slow GPU one submit of it could pass the time that a
     * system allows. */
    const uint32_t most = b->pass->uniform ? CANVAS_SUBMIT : s->n;
    for (uint32_t first = 0; first < s->n; first += most) {
        gpu_replay(b->g, s->list, first, s->n - first < most ? s->n - first : most);
    }
    b->stage = b->pass->n_out ? PASS_READING : PASS_WAITING;
    return BZ_PASS_AGAIN;
}

/* Each stretch of the list when its layer is there. What it computes is on its way while the next
 * layer's bytes are sent. */
static bz_pass_state submit_stretches(gpu_backend *b, uint64_t deadline, bz_error *err)
{
    const bz_schedule *s = b->schedule;
    while (b->stretch < s->n_stretches) {
        const gpu_stretch *t = &s->stretches[b->stretch];
        bz_pass_state state =
            t->layer ? gpu_stream_fetch(b->model->stream, t->layer, deadline, err) : BZ_PASS_DONE;
        if (state != BZ_PASS_DONE) {
            return state;
        }
        if (t->count) {
            gpu_replay(b->g, s->list, t->first, t->count);
        }
        b->stretch++;
    }
    gpu_stream_leave(b->model->stream, b);
    b->stage = b->pass->n_out ? PASS_READING : PASS_WAITING;
    return BZ_PASS_AGAIN;
}

/* A layer is a submit: short enough for systems that watch over GPUs, and a place to stop. The next
 * one is under way before it ends, so that the device never waits for the host. */
static bz_pass_state next_layer(gpu_backend *b, bz_error *err)
{
    const bz_schedule *s = b->schedule;
    if (b->before) {
        if (!gpu_signal_done(b->g, b->before)) {
            return BZ_PASS_WAIT;
        }
        b->before = 0;
    }
    b->before = b->fence;
    b->fence = 0;
    if (b->replayed == s->n) {
        if (b->before) {
            gpu_read_drop(b->g, b->before); /* reading waits for all of it */
            b->before = 0;
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

/* Logits in pieces of what one read may hold. */
static bz_pass_state read_output(gpu_backend *b, bz_error *err)
{
    const bz_tensor_info *out = bz_plan_tensor(b->schedule->plan, b->schedule->plan->output);
    uint64_t total =
        (uint64_t)(out->whole_pass ? b->pass->n : b->pass->n_out) * out->cols * sizeof(float);
    for (;;) {
        uint64_t n = total - b->read < GPU_MAX_READ ? total - b->read : GPU_MAX_READ;
        if (!b->fence) {
            b->fence =
                gpu_read(b->g, b->arena,
                         gpu_place(b->schedule, b->schedule->plan->output) + b->read, n, err);
            if (!b->fence) {
                return BZ_PASS_ERROR;
            }
        }
        if (!gpu_read_done(b->g, b->fence, (uint8_t *)b->out + b->read)) {
            return gpu_state_of(b->g, err) == GPU_READY ? BZ_PASS_WAIT : BZ_PASS_ERROR;
        }
        b->fence = 0;
        b->read += n;
        if (b->read == total) {
            return BZ_PASS_DONE;
        }
    }
}

static bz_pass_state step(bz_backend *backend, uint64_t deadline, bz_error *err)
{
    gpu_backend *b = (gpu_backend *)(void *)backend;
    if (gpu_state_of(b->g, err) != GPU_READY) {
        return BZ_PASS_ERROR;
    }
    switch (b->stage) {
    case PASS_SUBMIT: return submit(b, err);
    case PASS_STREAMING: return submit_stretches(b, deadline, err);
    case PASS_TOWER: return next_layer(b, err);
    case PASS_READING: return read_output(b, err);
    case PASS_WAITING: /* so that prompts are not queued without bound */
        if (!b->fence && !(b->fence = gpu_signal(b->g, err))) {
            return BZ_PASS_ERROR;
        }
        if (!gpu_signal_done(b->g, b->fence)) {
            return BZ_PASS_WAIT;
        }
        b->fence = 0;
        return BZ_PASS_DONE;
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
    *hits = b->use.hits;
    *misses = b->use.misses;
}

static void set_trace(bz_backend *backend, bz_trace trace, void *user)
{
    (void)backend; /* values stay on the GPU: the CPU's trace is the one to compare with */
    (void)trace;
    (void)user;
}

static void free_backend(bz_backend *backend)
{
    gpu_backend *b = (gpu_backend *)(void *)backend;
    const gpu_buffer buffers[] = {b->arena, b->side, b->rows, b->nothing, b->slots};
    stop(backend);
    for (int i = 0; i < 5; i++) {
        if (buffers[i]) {
            gpu_buffer_free(b->g, buffers[i]);
        }
    }
    gpu_drop_pass(b);
    gpu_choose_free(b);
    free(b->out);
    free(b->angles);
    bz_gpu_model_drop(b->model);
    free(b);
}

void bz_gpu_allow_f16(bz_backend *backend)
{
    gpu_backend *b = (gpu_backend *)(void *)backend;
    b->matrices = gpu_limits_of(b->g)->matrices;
}

bz_status bz_gpu_new(bz_backend **out, bz_gpu_model *model, bool f32_cache, bool fuse,
                     bz_error *err)
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
                           .set_trace = set_trace};
    gpu_kv_interface(&b->base);
    if (!model->stream) { /* a pass in stretches cannot be sent ahead */
        gpu_choose_interface(&b->base);
    }
    bz_gpu_model_hold(model);
    b->model = model;
    b->g = model->g;
    b->pipelines = model->pipelines;
    b->weights = model->weights;
    b->weight_bytes = model->weight_bytes;
    b->f32_cache = f32_cache;
    b->fuse = fuse;
    b->packed = !f32_cache && gpu_limits_of(b->g)->packed_dot;
    bz_error why = {0};
    b->rows = gpu_buffer_new(b->g, ROWS_WORDS * sizeof(uint32_t), GPU_STORAGE, &why);
    b->nothing = b->rows ? gpu_buffer_new(b->g, 256, GPU_STORAGE, &why) : 0;
    if (b->nothing && model->table) {
        b->slots = gpu_buffer_new(b->g, GPU_MAX_ROWS * sizeof(uint32_t), GPU_STORAGE, &why);
    }
    if (!b->nothing || (model->table && !b->slots)) {
        free_backend(&b->base);
        return bz_fail(err, why.code, "%s", why.text);
    }
    *out = &b->base;
    return BZ_OK;
}
