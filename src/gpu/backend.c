/* A pass on the GPU: write the parameter block and the angles, replay the list in one submit, read
 * the wanted logits back. */
#include "gpu/backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/internal.h"

static void begin(bz_backend *backend, bz_schedule *schedule, const bz_rows *rows)
{
    gpu_backend *b = (gpu_backend *)(void *)backend;
    b->schedule = schedule;
    b->pass = rows;
    b->stage = PASS_COMPILING;
}

/* ---- what changes per pass --------------------------------------------------------- */

static void write_rows(gpu_backend *b)
{
    uint32_t block[4 + 3 * GPU_MAX_ROWS] = {b->pass->n, b->pass->n_out};
    uint32_t n = b->pass->n;
    for (uint32_t i = 0; i < n; i++) {
        block[4 + i] = (uint32_t)b->pass->id[i];
        block[4 + GPU_MAX_ROWS + i] = (uint32_t)b->pass->pos[i];
    }
    for (uint32_t i = 0; i < b->pass->n_out; i++) {
        block[4 + 2 * GPU_MAX_ROWS + i] = b->pass->out[i];
    }
    gpu_write(b->g, b->rows, 0, block, (4 + GPU_MAX_ROWS + n) * sizeof *block);
    if (b->pass->n_out) {
        gpu_write(b->g, b->rows, (4 + 2 * GPU_MAX_ROWS) * sizeof *block, block + 4 + 2 * GPU_MAX_ROWS,
                  b->pass->n_out * sizeof *block);
    }
}

/* Cosines and sines come from the host: a shader's are only good to about 2^-11. */
static void write_angles(gpu_backend *b)
{
    for (uint32_t t = 0; t < b->schedule->n_ropes; t++) {
        const rope_fill *fill = &b->schedule->ropes[t];
        const bz_tensor_info *out = bz_plan_tensor(b->schedule->plan, fill->step->out[0]);
        uint32_t pairs = fill->step->width / 2;
        for (uint32_t r = 0; r < b->pass->n; r++) {
            float *row = b->angles + (size_t)r * out->stride, pos = (float)b->pass->pos[r];
            for (uint32_t i = 0; i < pairs; i++) {
                row[i] = cosf(pos * fill->frequency[i]);
                row[pairs + i] = sinf(pos * fill->frequency[i]);
            }
        }
        gpu_write(b->g, b->arena, gpu_place(b->schedule, fill->step->out[0]), b->angles, (uint64_t)b->pass->n * out->stride * sizeof(float));
    }
}

static bool reserve_host(gpu_backend *b, bz_error *err)
{
    size_t angles = 0;
    for (uint32_t t = 0; t < b->schedule->n_ropes; t++) {
        size_t need = (size_t)b->schedule->plan->rows * b->schedule->ropes[t].step->width * sizeof(float);
        angles = need > angles ? need : angles;
    }
    if (angles > b->angles_bytes) {
        free(b->angles);
        b->angles = malloc(angles);
        b->angles_bytes = b->angles ? angles : 0;
    }
    const bz_tensor_info *out = bz_plan_tensor(b->schedule->plan, b->schedule->plan->output);
    uint64_t bytes = (uint64_t)b->schedule->plan->out_rows * out->cols * sizeof(float);
    if (bytes > b->out_bytes) {
        free(b->out);
        b->out = malloc(bytes);
        b->out_bytes = b->out ? bytes : 0;
    }
    if (b->angles_bytes < angles || b->out_bytes < bytes) {
        bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a pass of %u rows.", b->schedule->plan->rows);
        return false;
    }
    return true;
}

/* ---- the pass ------------------------------------------------------------------------ */

static bz_pass_state submit(gpu_backend *b, bz_error *err)
{
    bz_schedule *s = b->schedule;
    const bz_kv *kv = b->pass->kv[0];
    uint32_t generation = kv->generation * 65536 + b->arena_generation;
    if (!s->list || s->kv_generation != generation) {
        if (gpu_record(b, s, kv, err) != BZ_OK) {
            return BZ_PASS_ERROR;
        }
        s->kv_generation = generation;
    }
    if (!reserve_host(b, err)) {
        return BZ_PASS_ERROR;
    }
    write_rows(b);
    write_angles(b);
    gpu_replay(b->g, s->list, 0, s->n);
    b->read = 0;
    b->fence = 0;
    b->stage = b->pass->n_out ? PASS_READING : PASS_WAITING;
    return BZ_PASS_AGAIN;
}

/* Logits in pieces of what one read may hold. */
static bz_pass_state read_output(gpu_backend *b, bz_error *err)
{
    const bz_tensor_info *out = bz_plan_tensor(b->schedule->plan, b->schedule->plan->output);
    uint64_t total = (uint64_t)b->pass->n_out * out->cols * sizeof(float);
    for (;;) {
        uint64_t n = total - b->read < GPU_MAX_READ ? total - b->read : GPU_MAX_READ;
        if (!b->fence) {
            b->fence = gpu_read(b->g, b->arena, gpu_place(b->schedule, b->schedule->plan->output) + b->read, n, err);
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
    (void)deadline; /* one submit is short; nothing here computes for long */
    gpu_backend *b = (gpu_backend *)(void *)backend;
    if (gpu_state_of(b->g, err) != GPU_READY) {
        return BZ_PASS_ERROR;
    }
    switch (b->stage) {
    case PASS_COMPILING:
        switch (gpu_kernels_state(b->kernels, err)) {
        case GPU_PIPELINE_COMPILING: return BZ_PASS_WAIT;
        case GPU_PIPELINE_FAILED: return BZ_PASS_ERROR;
        case GPU_PIPELINE_READY: b->stage = PASS_SUBMIT; break;
        }
        return BZ_PASS_AGAIN;
    case PASS_SUBMIT: return submit(b, err);
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

static void set_trace(bz_backend *backend, bz_trace trace, void *user)
{
    (void)backend; /* values stay on the GPU: the CPU's trace is the one to compare with */
    (void)trace;
    (void)user;
}

static void free_backend(bz_backend *backend)
{
    gpu_backend *b = (gpu_backend *)(void *)backend;
    const gpu_buffer buffers[] = {b->arena, b->rows, b->nothing};
    for (int i = 0; i < 3; i++) {
        if (buffers[i]) {
            gpu_buffer_free(b->g, buffers[i]);
        }
    }
    free(b->out);
    free(b->angles);
    bz_gpu_model_drop(b->model);
    free(b);
}

bz_status bz_gpu_new(bz_backend **out, bz_gpu_model *model, bool f32_cache, bool fuse, bz_error *err)
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
                           .set_trace = set_trace};
    gpu_kv_interface(&b->base);
    bz_gpu_model_hold(model);
    b->model = model;
    b->g = model->g;
    b->kernels = model->kernels;
    b->weights = model->weights;
    b->weight_bytes = model->weight_bytes;
    b->f32_cache = f32_cache;
    b->fuse = fuse;
    b->packed = !f32_cache && gpu_limits_of(b->g)->packed_dot;
    bz_error why = {0};
    b->rows = gpu_buffer_new(b->g, (4 + 3 * GPU_MAX_ROWS) * sizeof(uint32_t), GPU_STORAGE, &why);
    b->nothing = b->rows ? gpu_buffer_new(b->g, 256, GPU_STORAGE, &why) : 0;
    if (!b->nothing) {
        free_backend(&b->base);
        return bz_fail(err, why.code, "%s", why.text);
    }
    *out = &b->base;
    return BZ_OK;
}
