/* What the programs that measure GPU kernels share. */
#ifndef GPU_BENCH_H
#define GPU_BENCH_H

#include <stdio.h>
#include <stdlib.h>

#include "base/os.h"
#include "gpu/run/backend.h"

static inline void fail(const char *what, const bz_error *err)
{
    fprintf(stderr, "%s: %s\n", what, err->text);
    exit(1);
}

/* A model of these weights alone, on the GPU. */
static inline bz_gpu_model *load_weights(const bz_weights *table, const uint8_t *const *bytes,
                                         const char *what)
{
    bz_gpu_model *model = NULL;
    bz_need need = {0};
    bz_progress state = BZ_JOB_AGAIN;
    if (bz_gpu_model_new(&model, &(gpu_options){0}, table, bytes, &need.error) != BZ_OK) {
        fail("gpu", &need.error);
    }
    while (state == BZ_JOB_AGAIN || state == BZ_JOB_EVENT || state == BZ_JOB_NEED_GPU) {
        if (state == BZ_JOB_NEED_GPU) {
            bz_os_sleep(20000);
        }
        state = bz_gpu_model_load(model, &need);
    }
    if (state != BZ_JOB_DONE) {
        fail(what, &need.error);
    }
    return model;
}

/* A pass to its end. */
static inline void run_pass(bz_backend *b, bz_schedule *schedule, const bz_rows *rows)
{
    bz_error err = {0};
    bz_pass_state state;
    b->begin(b, schedule, rows);
    while ((state = b->step(b, 0, &err)) == BZ_PASS_AGAIN || state == BZ_PASS_WAIT) {
        if (state == BZ_PASS_WAIT) {
            bz_os_sleep(20000);
        }
    }
    if (state != BZ_PASS_DONE) {
        fail("pass", &err);
    }
}

#endif
