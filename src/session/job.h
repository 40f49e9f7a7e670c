/* The common part of all jobs: a job struct begins with a bz_job. */
#ifndef BZ_JOB_H
#define BZ_JOB_H

#include "base/lock.h"

struct bz_job {
    bz_progress (*step)(bz_job *job, bz_need *need); /* fills need->error with BZ_JOB_ERROR */
    void (*free)(bz_job *job);
    bz_model *(*model)(bz_job *job); /* of a job that opens a model; else NULL */
    bz_lock *lock;                   /* held during a step; NULL: none */
    const bz_model *uses;            /* whose files must stay whole; NULL: none */
    bool ended;                      /* done or failed: stepping again returns the same */
    bz_error error;
    bz_finish finish;               /* of generating */
    const struct bz_canvas *canvas; /* of a diffusion model: as of the last event; NULL: none yet */
};

enum { BZ_STEP_NS = 10 * 1000 * 1000 }; /* how long a step may compute */
enum { BZ_GPU_WAIT_NS = 20 * 1000 };    /* between two looks at a busy device */

#endif
