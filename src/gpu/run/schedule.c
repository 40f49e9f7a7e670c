/* A plan made ready to run: lowers it, requests its pipelines, creates its buffers. */
#include <stdlib.h>

#include "gpu/run/internal.h"

void gpu_release(bz_backend *backend, bz_schedule *s)
{
    gpu_backend *b = (gpu_backend *)(void *)backend;
    if (!s) {
        return;
    }
    if (s == b->tracer.traced) {
        gpu_trace_drop(b);
    }
    if (s->list) {
        gpu_list_free(b->g, s->list);
    }
    if (s->params) {
        gpu_buffer_free(b->g, s->params);
    }
    gpu_lowered_free(&s->lowered);
    free(s->segments);
    free(s->dispatches);
    free(s);
}

/* Compiling starts here; gpu_ready waits for it. */
static bool request_pipelines(gpu_backend *b, const gpu_lowered *l, bz_error *err)
{
    bool ok = true;
    for (uint32_t i = 0; i < l->n && ok; i++) {
        const gpu_dispatch *d = &l->dispatches[i];
        ok = gpu_pipelines_get(b->pipelines, d->kernel, d->type, d->overrides, err) != 0;
    }
    return ok;
}

static gpu_lower_input lower_input(const gpu_backend *b, const bz_plan *plan, bool fuse)
{
    gpu_lower_input in = {.plan = plan,
                          .weights = &b->weights.map,
                          .host_weights = b->weight_bytes,
                          .limits = gpu_limits_of(b->g),
                          .fuse = fuse,
                          .packed = b->packed,
                          .matrices = b->matrices,
                          .cache = b->cache};
    if (b->model->table) {
        in.table = gpu_table_shape_of(b->model->table);
    }
    return in;
}

bz_status gpu_prepare_list(gpu_backend *b, const bz_plan *plan, bool fuse, bz_schedule **out,
                           bz_error *err)
{
    if (!plan->tower && plan->rows > GPU_MAX_ROWS) { /* capacity of the parameter block */
        return bz_fail(err, BZ_BAD_REQUEST,
                       "A pass of %u rows was planned; on the GPU it has at most %d.", plan->rows,
                       GPU_MAX_ROWS);
    }
    bz_schedule *s = calloc(1, sizeof *s);
    if (!s) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to schedule a plan.");
    }
    const gpu_lower_input in = lower_input(b, plan, fuse);
    bz_error local = {0};
    s->plan = plan;
    if (gpu_lower(&in, &s->lowered, &local) != BZ_OK ||
        !request_pipelines(b, &s->lowered, &local) || gpu_expand(b, s, NULL, &local) != BZ_OK ||
        (gpu_chooses(s) && gpu_choose_prepare(b, s, &local) != BZ_OK)) {
        gpu_release(&b->base, s);
        if (err) {
            *err = local;
        }
        return local.code;
    }
    *out = s;
    return BZ_OK;
}

bz_status gpu_prepare(bz_backend *backend, const bz_plan *plan, bz_schedule **out, bz_error *err)
{
    gpu_backend *b = (gpu_backend *)(void *)backend;
    return gpu_prepare_list(b, plan, b->fuse, out, err);
}
