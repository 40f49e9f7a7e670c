/* Reports about a schedule: the time of each kernel, and the list of dispatches. Called by the
 * API's debug functions and by benches. */
#include <stdlib.h>
#include <string.h>

#include "gpu/run/backend.h"
#include "gpu/run/internal.h"

static int slowest_first(const void *a, const void *b)
{
    double x = ((const bz_gpu_line *)a)->microseconds, y = ((const bz_gpu_line *)b)->microseconds;
    return x < y ? 1 : x > y ? -1 : 0;
}

static uint32_t vocabulary(const bz_plan *p)
{
    for (size_t i = 0; i < p->n_steps; i++) {
        if (p->steps[i].op == BZ_OP_EMBED) {
            return (uint32_t)bz_weight_of(p->weights, p->steps[i].w[0])->ne[1];
        }
    }
    return 1;
}

size_t bz_gpu_profile(bz_backend *backend, const bz_schedule *s, uint32_t position,
                      bz_gpu_line *lines, size_t cap)
{
    gpu_backend *b = (gpu_backend *)(void *)backend;
    if (!s->plan->tower) { /* a tower runs on the rows of its last pass */
        uint32_t block[ROWS_CHOSEN] = {s->plan->rows, s->plan->out_rows};
        for (uint32_t i = 0; i < s->plan->rows; i++) {
            block[ROWS_LIST + 3 * i] =
                i * 7919 % vocabulary(s->plan); /* so that rows choose different experts */
            block[ROWS_LIST + 3 * i + 1] = position + i;
        }
        gpu_write(b->g, b->rows, 0, block, sizeof block);
    }
    const bz_edits none = {0};
    const bz_topk_request usual = {
        .edits = &none, .wanted = 64, .temperature = 1, .top_k = 64, .top_p = 0.95f};
    const gpu_dispatch end[2] = {{.kernel = GPU_CHOOSE_SCAN},
                                 {.kernel = GPU_CHOOSE_PICK}}; /* after those of the plan */
    const uint32_t total =
        s->n + (backend->set_topk && gpu_chooses(s) &&
                        backend->set_topk(backend, s, NULL, &usual, NULL) == BZ_OK
                    ? 2
                    : 0);
    double *ns = calloc(total + 1, sizeof *ns);
    size_t n = 0;
    if (ns && s->list && gpu_time_list(b->g, s->list, 0, total, ns)) {
        for (uint32_t i = 0; i < total; i++) {
            const gpu_dispatch *d = i < s->n ? &s->dispatches[i] : &end[i - s->n];
            char name[sizeof lines->name];
            gpu_kernel_name(d->kernel, d->type, name, sizeof name);
            size_t at = 0;
            while (at < n && strcmp(lines[at].name, name) != 0) {
                at++;
            }
            if (at == cap) {
                continue;
            }
            if (at == n) {
                lines[n++] = (bz_gpu_line){0};
                memcpy(lines[at].name, name, sizeof name);
            }
            lines[at].dispatches++;
            lines[at].microseconds += ns[i] / 1e3;
            lines[at].weight_bytes += d->kernel == GPU_EMBED || d->kernel == GPU_EMBED_SLOTS ||
                                              d->kernel == GPU_EMBED_BEST ||
                                              d->kernel == GPU_LIST_ROWS ||
                                              d->kernel == GPU_LINEAR_LISTED
                                          ? 0
                                          : d->weights.at.size;
        }
    }
    free(ns);
    qsort(lines, n, sizeof *lines, slowest_first);
    return n;
}

size_t bz_gpu_dispatches(const bz_schedule *s, bz_gpu_dispatch *out, size_t cap)
{
    for (uint32_t i = 0; i < s->n && i < cap; i++) {
        const gpu_dispatch *d = &s->dispatches[i];
        out[i] = (bz_gpu_dispatch){.first_step = d->first_step,
                                   .steps = d->steps,
                                   .n_later = d->n_later,
                                   .rule = d->rule,
                                   .x = d->x,
                                   .y = d->y};
        memcpy(out[i].later, d->later, sizeof d->later);
        gpu_kernel_name(d->kernel, d->type, out[i].name, sizeof out[i].name);
    }
    return s->n;
}
