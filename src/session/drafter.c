/* Passes of the model's drafter: a row that reads the model's caches and drafts several tokens, one
 * after the other. */
#include "model/assistant.h"
#include "session/job.h"
#include "session/session.h"

bool bz_session_can_draft(const bz_session *s)
{
    return s->model->text.assistant && s->n > s->state_first &&
           s->n - s->state_first <= s->state_rows;
}

static bz_status draft_plan(bz_session *s, uint32_t count, session_plan **out, bz_error *err)
{
    session_plan *p = &s->draft_plans[count - 1];
    bz_status status = BZ_OK;
    if (!p->plan) {
        status = bz_assistant_record(bz_adapted_text(s->model, s->adapters), count, &p->plan, err);
    }
    if (status == BZ_OK && !p->schedule) {
        status = s->backend->prepare(s->backend, p->plan, &p->schedule, err);
    }
    *out = p;
    return status;
}

/* The drafter's row: the token at s->n, after the last position of the caches. */
static bz_rows row_of(bz_session *s)
{
    s->pos[0] = (int32_t)s->n - 1;
    s->draft_angle = (int32_t)s->n;
    s->out[0] = s->n - 1 - s->state_first;
    return (bz_rows){.n = 1,
                     .n_out = 1,
                     .id = s->tokens + s->n,
                     .pos = s->pos,
                     .angle = &s->draft_angle,
                     .seq = s->seq,
                     .out = s->out,
                     .kv = s->kv_list};
}

bz_status bz_session_start_draft(bz_session *s, uint32_t count, bz_error *err)
{
    const bz_status status = draft_plan(s, count, &s->running, err);
    if (status == BZ_OK) {
        s->rows = row_of(s);
        s->backend->begin(s->backend, s->running->schedule, &s->rows);
    }
    return status;
}

bz_pass_state bz_session_draft_step(bz_session *s, bz_error *err)
{
    const bz_pass_state state = s->backend->step(s->backend, bz_os_now() + BZ_STEP_NS, err);
    if (state == BZ_PASS_DONE) {
        const bz_plan *plan = s->running->plan;
        const uint32_t count = bz_plan_tensor(plan, plan->output)->cols;
        const float *ids = s->backend->output(s->backend, s->running->schedule);
        for (uint32_t i = 0; i < count; i++) {
            s->tokens[s->n + 1 + i] = (int32_t)ids[i];
        }
    }
    return state;
}

bz_pass_state bz_session_send_drafts(bz_session *s, uint32_t count, bz_error *err)
{
    session_plan *plan;
    if (draft_plan(s, count, &plan, err) != BZ_OK) {
        return BZ_PASS_ERROR;
    }
    const bz_rows rows = row_of(s);
    return s->backend->send_drafts(s->backend, plan->schedule, &rows, err);
}
