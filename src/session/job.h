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

/* Sleeps before the next look at a busy device: a 64th of the time waited so far, within bounds, so
 * that a long wait takes few looks and a short one ends on time. *since: when the wait began; 0:
 * now. The caller sets it to 0 when the wait is over. */
void bz_gpu_pause(uint64_t *since);

#endif
