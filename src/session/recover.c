#include "session/recover.h"

static bool is_on_device(const bz_session *s)
{
    return s->backend && (!s->model->gpu || s->device == s->model->gpu->loaded);
}

bool bz_session_is_there(const bz_session *s)
{
    return is_on_device(s) && !s->recomputing && (!s->model->gpu || bz_model_is_loaded(s->model));
}

void bz_session_begin_job(bz_session *s)
{
    s->busy = true;
    s->lost = false;
}

void bz_session_end_job(bz_session *s)
{
    bz_session_forget(s);
    if (s->backend && s->backend->stop) {
        s->backend->stop(s->backend);
    }
    bz_model_load_end(s->model, s);
    s->in_recompute_pass = false; /* an abandoned pass starts again */
    s->busy = false;
}

/* ---- recovery ---------------------------------------------------------------------- */

static bz_progress find_device(bz_session *s, bz_need *need)
{
    bz_session_detach(s);
    s->recomputing = true;
    s->in_recompute_pass = false;
    s->recomputed = 0;
    bz_progress p = bz_model_load(s->model, s, need);
    if (p == BZ_JOB_EVENT) {
        need->event.kind = BZ_EVENT_RELOAD;
    }
    if (p == BZ_JOB_DONE) {
        p = bz_adapter_set_load(s->adapters, need);
    }
    if (p == BZ_JOB_DONE) {
        p = bz_session_attach(s, &need->error) == BZ_OK ? BZ_JOB_AGAIN : BZ_JOB_ERROR;
    }
    return p;
}

/* How many tokens from `first` on are computed again in one pass: those that were in one pass, or
 * several small passes together. *like: how many rows that pass had, some of which the session may
 * have dropped since. */
static uint32_t same_pass(const bz_session *s, uint32_t first, uint32_t *like)
{
    const uint32_t rows = s->pass_rows[first];
    const bool few = rows && rows <= BZ_BIT_EQUAL_ROWS;
    const uint32_t most = few && s->chunk > BZ_BIT_EQUAL_ROWS ? BZ_BIT_EQUAL_ROWS : s->chunk;
    uint32_t count = 1;
    while (count < most && first + count < s->n &&
           s->pass_rows[first + count] <= (few ? BZ_BIT_EQUAL_ROWS : 0)) {
        count++;
    }
    count = bz_session_fit_pass(s, first, count);
    *like = few                        ? count
            : rows && rows <= s->chunk ? rows
            : count > s->chunk         ? count
                                       : s->chunk; /* chunks may be smaller now */
    return count;
}

/* Computes the tokens held again, in the same passes as before: kernels and the order of sums
 * depend on the rows of a pass, and the text must continue as it would have. Without logits: those
 * of the last token are still in s->logits. */
static bz_progress compute_again(bz_session *s, bz_need *need)
{
    if (s->recomputed == s->n) {
        s->recomputing = false;
        return BZ_JOB_DONE;
    }
    if (!s->in_recompute_pass) {
        uint32_t like;
        const uint32_t count = same_pass(s, s->recomputed, &like);
        bz_status status =
            bz_session_start_pass(s, s->recomputed, count, like, PASS_NONE, &need->error);
        s->in_recompute_pass = status == BZ_OK;
        return s->in_recompute_pass ||
                       (status == BZ_OUT_OF_MEMORY && bz_session_shrink_chunk(s, like))
                   ? BZ_JOB_AGAIN
                   : BZ_JOB_ERROR;
    }
    bz_pass_state state = s->backend->step(s->backend, bz_os_now() + BZ_STEP_NS, &need->error);
    if (state != BZ_PASS_DONE) {
        return bz_session_progress(s, state, need);
    }
    s->in_recompute_pass = false;
    s->recomputed += s->rows.n;
    return BZ_JOB_AGAIN;
}

static bz_progress recover(bz_session *s, bz_need *need)
{
    bz_progress p = is_on_device(s) ? compute_again(s, need) : find_device(s, need);
    if (p == BZ_JOB_ERROR) {
        s->in_recompute_pass = false;
    }
    return p;
}

/* ---- a step of a job ----------------------------------------------------------------- */

bz_progress bz_session_work(bz_session *s, bz_job *job,
                            bz_progress (*work)(bz_job *job, bz_need *need),
                            void (*restart)(bz_job *job), bz_need *need)
{
    bz_progress p;
    if (!is_on_device(s) || s->recomputing) {
        p = recover(s, need);
        if (p == BZ_JOB_DONE) {
            restart(job);
            return BZ_JOB_AGAIN;
        }
    } else {
        p = work(job, need);
        if (p == BZ_JOB_ERROR && need->error.code == BZ_DEVICE_LOST &&
            !(s->lost && s->lost_at == s->n)) {
            s->lost = true;
            s->lost_at = s->n;
            bz_session_detach(s);
            return BZ_JOB_AGAIN;
        }
    }
    if (p == BZ_JOB_ERROR && s->model->gpu && s->backend && !bz_model_is_loaded(s->model)) {
        bz_session_detach(
            s); /* lost, or refusing all commands since an error: another one for the next job */
    }
    return p;
}
