#include "session/job.h"

#include "base/options.h"
#include "base/os.h"
#include "session/model.h"

bz_progress bz_job_step(bz_job *job, bz_need *need)
{
    if (job->ended) {
        need->error = job->error;
        return job->error.code == BZ_OK ? BZ_JOB_DONE : BZ_JOB_ERROR;
    }
    bz_lock_take(job->lock);
    bz_progress p = job->step(job, need);
    bz_lock_give(job->lock);
    if (job->uses && bz_model_check_files(job->uses, &need->error) != BZ_OK) {
        p = BZ_JOB_ERROR; /* what was computed is wrong */
    }
    if (p == BZ_JOB_DONE || p == BZ_JOB_ERROR) {
        job->ended = true;
        job->error = p == BZ_JOB_ERROR ? need->error : (bz_error){0};
    }
    return p;
}

void bz_job_free(bz_job *job)
{
    if (job) {
        bz_lock *lock = job->lock;
        bz_lock_take(lock);
        job->free(job);
        bz_lock_give(lock);
    }
}

bz_model *bz_job_model(bz_job *job)
{
    return job->model ? job->model(job) : NULL;
}

bz_finish bz_job_finish(const bz_job *job)
{
    return job->error.code == BZ_OK ? job->finish : BZ_FINISH_NONE;
}

bz_status bz_job_run(bz_job *job, const bz_host *host, bz_error *err)
{
    bz_host h;
    const bz_status read = BZ_READ_HOST(&h, host, err);
    if (read != BZ_OK) {
        return read;
    }
    uint64_t waiting_since = 0;
    for (;;) {
        bz_need need = {0};
        const bz_event step = {.kind = BZ_EVENT_STEP}, *event = &step;
        const bz_progress progress = bz_job_step(job, &need);
        waiting_since = progress == BZ_JOB_NEED_GPU ? waiting_since : 0;
        switch (progress) {
        case BZ_JOB_AGAIN: break;
        case BZ_JOB_NEED_GPU: bz_gpu_pause(&waiting_since); break;
        case BZ_JOB_NEED_BYTES:
            for (uint32_t i = 0; i < need.n_reads; i++) {
                if (!h.read || h.read(h.user, &need.reads[i]) != 0) {
                    return bz_fail(err, BZ_BAD_FILE,
                                   "Reading %llu bytes at %llu of file %u failed.",
                                   (unsigned long long)need.reads[i].length,
                                   (unsigned long long)need.reads[i].offset, need.reads[i].file);
                }
            }
            break;
        case BZ_JOB_EVENT: event = &need.event; break;
        case BZ_JOB_DONE: return BZ_OK;
        case BZ_JOB_ERROR:
            if (err) {
                *err = need.error;
            }
            return need.error.code;
        }
        if (h.event && h.event(h.user, event) != 0) {
            return bz_fail(err, BZ_ABORTED, "Stopped on request.");
        }
    }
}
